"""The frame log: an append-only file of hashed blocks that survives a killed process.

A frame is: magic, kind, payload size, a 128-bit hash of these and the payload, then the payload. A process killed
while it writes leaves a torn last frame; its hash shows that, and the next opening cuts it off. Damage before a
good frame is not a torn tail and is refused.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reluctant.errors import TranscriptCorrupt, TranscriptError, TranscriptInUse, TranscriptMismatch, require
from reluctant.numerics import FloatArray

FRAME_MAGIC = b"RLTR"
FRAME_HEAD = struct.Struct("<4sIQ16s")  # magic, kind, payload size, hash

# A written block is safe from a kill at once; a power cut may take what was not yet forced to disk.
SYNC_BYTES = 8 * 2**20
SYNC_SECONDS = 1.0


def hash128(*parts: Any) -> bytes:
    """128-bit hash of bytes-like parts: fast, not cryptographic (nobody chooses the rows but us)."""
    state = _xxhash().xxh3_128()
    for part in parts:
        state.update(part)
    return bytes(state.digest())


def row_keys(rows: FloatArray) -> list[bytes]:
    """The 128-bit hash of each row's bytes."""
    digest = _xxhash().xxh3_128_digest
    return [digest(row) for row in rows]


def _xxhash() -> Any:
    return require("xxhash", purpose="A transcript")


@dataclass(frozen=True)
class LogFrame:
    """One block of the log."""

    kind: int
    payload: memoryview


class FrameLog:
    """The log file: existing frames are read on opening, new ones are appended and never changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._lock()
        try:
            self.frames, self._end = _read_log(path)
            self.torn_bytes = path.stat().st_size - self._end
            os.truncate(path, self._end)
        except BaseException:
            self._file.close()
            raise
        self._unsynced, self._synced_at = 0, time.monotonic()

    @property
    def closed(self) -> bool:
        """True once the log takes no more frames."""
        return self._file.closed

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system: two writers would be the user's mistake
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise TranscriptInUse(
                f"transcript: '{self.path}' is being written by another process. Wait for it, or use another folder."
            ) from error

    def append(self, kind: int, *parts: Any) -> None:
        """Write one frame; when this returns, a kill of the process no longer loses it."""
        payload = b"".join(parts)
        lead = FRAME_MAGIC + struct.pack("<IQ", kind, len(payload))
        block = lead + hash128(lead, payload) + payload
        rest = memoryview(block)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            self._end += len(block)
            self._unsynced += len(block)
            if self._unsynced >= SYNC_BYTES or time.monotonic() - self._synced_at >= SYNC_SECONDS:
                self.sync()
        except OSError as error:
            os.truncate(self.path, self._end)  # half a frame before good ones would spoil the log
            raise TranscriptError(f"transcript: cannot write '{self.path}': {error}. Free space and resume.") from error

    def sync(self) -> None:
        """Force everything to disk."""
        os.fsync(self._file.fileno())
        self._unsynced, self._synced_at = 0, time.monotonic()

    def close(self) -> None:
        """Force everything to disk and let go of the file."""
        if not self._file.closed:
            self.sync()
            self._file.close()


def _read_log(path: Path) -> tuple[list[LogFrame], int]:
    """All good frames from the start, and the offset where they end."""
    data = memoryview(path.read_bytes())
    frames: list[LogFrame] = []
    end = 0
    for frame, stop in _good_frames(data, 0):
        frames.append(frame)
        end = stop
    if _good_frame_after(data, end):
        raise TranscriptCorrupt(
            f"transcript: '{path}' is damaged at byte {end}, with good blocks after it, so it is not just a torn "
            "end. Restore a copy, or start with a new folder."
        )
    if not frames and data[: len(FRAME_MAGIC)] != FRAME_MAGIC[: len(data)]:
        raise TranscriptMismatch(f"transcript: '{path}' is not a transcript; it was left as it is. Use another folder.")
    return frames, end


def _good_frames(data: memoryview, start: int) -> Iterator[tuple[LogFrame, int]]:
    while start + FRAME_HEAD.size <= len(data):
        magic, kind, size, digest = FRAME_HEAD.unpack_from(data, start)
        stop = start + FRAME_HEAD.size + size
        if magic != FRAME_MAGIC or stop > len(data):
            return
        payload = data[start + FRAME_HEAD.size : stop]
        if hash128(data[start : start + FRAME_HEAD.size - len(digest)], payload) != digest:
            return
        yield LogFrame(kind, payload), stop
        start = stop


def _good_frame_after(data: memoryview, start: int) -> bool:
    tail = bytes(data[start:])
    place = tail.find(FRAME_MAGIC, 1)
    while place >= 0:
        if next(_good_frames(data, start + place), None):
            return True
        place = tail.find(FRAME_MAGIC, place + 1)
    return False
