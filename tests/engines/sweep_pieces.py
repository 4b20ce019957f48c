"""Pieces of sweeps, importable on workers."""

from __future__ import annotations

import os
import signal


def squared_somewhere(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def failing(number: int) -> int:
    if number == 3:
        raise ValueError(f"not {number}")
    return number


def late(number: int) -> int:
    raise TimeoutError(f"{number} took too long")


def unpacked_nowhere() -> object:
    raise ModuleNotFoundError("no module of that name")


class Unopenable:
    """Pickles well and cannot be unpacked again."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return unpacked_nowhere, ()


def fatal(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number
