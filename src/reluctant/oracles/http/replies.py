"""What a server's status means: wait, ask less at once, or give up; each with the server's own words."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from reluctant.errors import BatchRefused, TargetBusy, TargetError, TargetRefused, TargetUnavailable
from reluctant.oracles.http.json_text import read_json

__all__ = ["NOT_FOUND", "Reply", "failure_of", "said_by"]

BUSY = {429, 503}
TOO_MUCH = {400, 413, 422}  # what servers say to a batch they do not take, besides a request that is wrong
NO_ENTRY = {401, 403}
NOT_FOUND = 404
LONGEST_QUOTE = 200


@dataclass(frozen=True)
class Reply:
    """Status, headers (lower case) and body of one answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """True if the request was answered."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as data; a body that is torn is worth asking again."""
        try:
            return read_json(self.body)
        except ValueError as error:
            raise TargetUnavailable(
                f"target: got a reply of {len(self.body)} bytes that is no JSON ({error}), expected a whole one. "
                "If it happens now and then it is cut off on its way, and asked again."
            ) from None


def failure_of(reply: Reply, where: str, rows: int, auth_env: str | None) -> TargetError:
    """The error for a reply that is none; `rows` is how many the request had (0: not a question)."""
    said = said_by(reply, where)
    if reply.status in BUSY:
        wait = retry_after(reply.headers)
        more = f" and asks to come back in {wait:g} s" if wait else ""
        return TargetBusy(
            f"target: {said}{more}. Ask more slowly (rate=, connections=1) or raise retries.", retry_after=wait
        )
    if reply.status in NO_ENTRY:
        fix = (
            f"Check the credential in {auth_env}, and auth_header."
            if auth_env
            else "Name the environment variable that holds the credential: auth_env= (--auth-env)."
        )
        return TargetRefused(f"target: {said}, expected to be let in. {fix}")
    if reply.status in TOO_MUCH and rows > 1:
        return BatchRefused(f"target: {said} to {rows} rows at once. Give a smaller batch=.")
    if reply.status < 500:
        return _refused(reply, said, rows)
    return TargetUnavailable(
        f"target: {said}, expected an answer. If it happens now and then, raise retries; "
        "if it takes only a fixed number of rows, give batch=."
    )


def _refused(reply: Reply, said: str, rows: int) -> TargetRefused:
    """The same request would be refused again; whether it is these rows that are not taken, or any."""
    if reply.status == NOT_FOUND or not rows:
        return TargetRefused(f"target: {said}, expected an answer. Check the address, and the name of the model in it.")
    ranges = ", and the range of inputs that it takes (domain=, --domain)" if reply.status in TOO_MUCH else ""
    return TargetRefused(
        f"target: {said}, expected an answer. Check the address, dim, datatype and encoding{ranges}.",
        these_rows=reply.status in TOO_MUCH,
    )


def said_by(reply: Reply, where: str, verb: str = " answered") -> str:
    """A status and the server's own words, to a request that came to nothing."""
    return f"{where}{verb} {reply.status}{_quoted(reply)}"


def retry_after(headers: dict[str, str]) -> float:
    """Seconds that the server asks for, given as a number or as a date; 0 if it does not say."""
    text = headers.get("retry-after", "").strip()
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return 0.0


def _quoted(reply: Reply) -> str:
    """The server's own explanation, shortened."""
    text = reply.body.decode("utf-8", "replace")
    try:
        data = json.loads(text)
        text = str(data.get("error") or data.get("detail") or data) if isinstance(data, dict) else text
    except ValueError:
        pass
    text = " ".join(text.split())
    return f" ({text[:LONGEST_QUOTE]})" if text else ""
