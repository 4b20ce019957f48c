"""Requests to one server: connections, rate limit, exact JSON, and the error for each HTTP status.

A connection is a transport of httpx without the client around it: no cookies, redirects or compression are wanted,
and each request costs half as much. A connection that is out of step is thrown away. A status says: wait, ask less
at once, or give up, each with the server's own words. Errors become ours here without their cause, so that no
request with its headers travels in an error. Numbers go through JSON exactly, by orjson where it is installed.
"""

from __future__ import annotations

import importlib
import json
import queue
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import numpy as np

from reluctant.errors import (
    BatchRefused,
    InvalidInput,
    Option,
    ReluctantError,
    TargetBusy,
    TargetError,
    TargetRefused,
    TargetTimeout,
    TargetUnavailable,
    Words,
    require,
    words,
)
from reluctant.oracles.http.security import Secret, hidden_values, scrub, shown_url
from reluctant.oracles.keywords import Serving

E = TypeVar("E", bound=ReluctantError)

TIMEOUT_SECONDS = 30.0
CONNECT_SECONDS = 10.0  # at most: a server that is there answers a greeting soon


class Server:
    """One server, asked over at most `connections` kept-open connections.

    Arguments:
        url: where it is; only scheme, host and path are ever shown.
        options: how it is asked.
        timeout: seconds for one request, from sending it to the last byte of its answer.
    """

    def __init__(self, url: str, options: Serving, timeout: float | None) -> None:
        self._httpx = require("httpx", extra="http", purpose="Asking a served model")
        self.url, self.shown = url.rstrip("/"), shown_url(url)
        self.timeout = timeout or TIMEOUT_SECONDS
        self.pace = RateLimit(options.rate)
        self._auth_env = options.auth_env
        self._secret = None if options.auth_env is None else Secret(options.auth_env)
        self._hidden = hidden_values(url, options.request)
        self._headers = {} if self._secret is None else self._secret.header(options.auth_header)
        self._trust = _trusted_authorities(options.ca)
        parts = urlsplit(url)
        self._proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
        seconds = {"connect": min(self.timeout, CONNECT_SECONDS), "pool": self.timeout}
        self._extensions = {"timeout": seconds | {"read": self.timeout, "write": self.timeout}}
        self._parsed: dict[str, Any] = {}  # addresses: a handful, asked many times
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(options.connections):
            self._idle.put(None)  # opened when first needed

    def ask(self, method: str, url: str, *, rows: int = 0, body: bytes = b"", headers: dict[str, str]) -> Reply:
        """Send a request; its reply, or the error that says what to do."""
        reply = self.send(method, url, rows=rows, body=body, headers=headers)
        if reply.ok:
            return reply
        raise self.failure(reply, method, url, rows)

    def failure(self, reply: Reply, method: str, url: str, rows: int) -> TargetError:
        """The error behind a reply; all connections keep still if the server asks for it."""
        error = self.scrubbed(failure_of(reply, f"{method} {shown_url(url)}", rows, self._auth_env))
        if isinstance(error, TargetBusy):
            self.pace.hold(error.retry_after)
        return error

    def send(
        self, method: str, url: str, *, rows: int = 0, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Reply:
        """Send a request; its reply whatever the status, or an error if none came."""
        self.pace.wait(rows)
        client = self._idle.get() or self._open()
        try:
            reply = self._exchange(client, method, url, body, headers or {})
        except BaseException:
            self._idle.put(None)
            client.close()
            raise
        self._idle.put(client)
        return reply

    def drop_idle(self) -> None:
        """Close every connection that is not in use: one of them is out of step."""
        idle = []
        with suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for client in idle:
            if client is not None:
                client.close()
            self._idle.put(None)

    close = drop_idle

    def _open(self) -> Any:
        limits = self._httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return self._httpx.HTTPTransport(verify=self._trust, limits=limits, proxy=self._proxy)

    def _exchange(self, client: Any, method: str, url: str, body: bytes, headers: dict[str, str]) -> Reply:
        deadline = time.monotonic() + self.timeout
        httpx, where = self._httpx, f"{method} {shown_url(url)}"
        sent = {"Accept-Encoding": "identity"} | self._headers | headers
        error: ReluctantError
        try:
            if url not in self._parsed:
                self._parsed[url] = httpx.URL(url)
            request = httpx.Request(method, self._parsed[url], content=body, headers=sent, extensions=self._extensions)
            response = client.handle_request(request)
            try:
                named = {name.lower(): value for name, value in response.headers.items()}
                return Reply(response.status_code, named, _read_body(httpx, response, deadline))
            finally:
                response.close()
        except httpx.ConnectTimeout:
            error = _unreachable(self.shown, f"nothing within {CONNECT_SECONDS:g} s")
        except httpx.TimeoutException:
            error = TargetTimeout(f"target: {where} was not answered within {self.timeout:g} s. Raise timeout.")
        except httpx.ConnectError as problem:
            text = str(problem)
            error = _untrusted(self.shown, text) if "CERTIFICATE" in text.upper() else _unreachable(self.shown, text)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as problem:
            error = InvalidInput.about("target", got=f"'{self.shown}' ({problem})", expected="an http or https address")
        except httpx.HTTPError as problem:
            taken = isinstance(problem, httpx.RemoteProtocolError)  # a server that took the call and closed it
            error = TargetUnavailable(
                f"target: {where} was cut off ({problem}), expected an answer.", replied=taken
            ).advised(words("If it never answers, check {dim}, the number of inputs."))
        raise self.scrubbed(error) from None

    def scrubbed(self, error: E) -> E:
        """The error without the credential and the secret parts of address and request."""
        error.args = (error.words.with_text(self._scrub), *error.args[1:])
        return error

    def _scrub(self, text: str) -> str:
        return scrub(text if self._secret is None else self._secret.scrub(text), self._hidden)

    def __repr__(self) -> str:
        return f"Server({self.shown})"


def _read_body(httpx: Any, response: Any, deadline: float) -> bytes:
    parts = []
    for part in response.iter_bytes():
        parts.append(part)
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the answer trickles in too slowly")
    return b"".join(parts)


def _unreachable(where: str, problem: str) -> TargetBusy:
    return TargetBusy(
        f"target: got no connection to {where} ({problem}), expected a server there. "
        "Check the address, and that it is running."
    )


def _untrusted(where: str, problem: str) -> InvalidInput:
    return InvalidInput.about(
        "target", got=f"a certificate of {where} that cannot be verified ({problem})", expected="one that can",
        fix=words("For a private authority give its certificate: {ca}.", ca="FILE"),
    )  # fmt: skip


def _trusted_authorities(ca: str | Path | None) -> ssl.SSLContext:
    """The system's authorities, and one more if given; nothing is ever accepted unverified."""
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(cafile=str(ca))
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput.about("ca", got=f"'{ca}' ({error})", expected="a file of PEM certificates") from error
    return context


BUSY_STATUSES = {429, 503}
TOO_MUCH_STATUSES = {400, 413, 422}  # what servers say to a batch they do not take, besides a request that is wrong
NO_ENTRY_STATUSES = {401, 403}
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

    @property
    def is_page(self) -> bool:
        """True if the body is one for people."""
        return "html" in self.headers.get("content-type", "") or self.body.lstrip()[:1] == b"<"

    def json(self) -> Any:
        """The body as data; a body that is torn is worth asking again, and a page of HTML is not."""
        try:
            return read_json(self.body)
        except ValueError as error:
            if self.is_page:
                raise TargetRefused(
                    f"target: got a page of HTML{_quoted(self)}, expected JSON. Check the address: a login, a proxy or "
                    "another service may answer there."
                ) from None
            raise TargetUnavailable(
                f"target: got a reply of {len(self.body)} bytes that is no JSON ({error}), expected a whole one. "
                "If it happens now and then it is cut off on its way, and asked again."
            ) from None


def failure_of(reply: Reply, where: str, rows: int, auth_env: str | None) -> TargetError:
    """The error for a reply that is none; `rows` is how many the request had (0: not a question)."""
    said = said_by(reply, where)
    if reply.status in BUSY_STATUSES:
        wait = retry_after(reply.headers)
        more = f" and asks to come back in {wait:g} s" if wait else ""
        return TargetBusy(f"target: {said}{more}.", retry_after=wait).advised(
            words("Ask more slowly ({rate}, {connections}) or raise {retries}.", connections=1)
        )
    if reply.status in NO_ENTRY_STATUSES:
        fix = (
            Words(f"Check the credential in {auth_env}, and ", Option("auth_header"), ".")
            if auth_env
            else words("Name the environment variable that holds the credential: {auth_env}.", auth_env="NAME")
        )
        return TargetRefused(f"target: {said}, expected to be let in.").advised(fix)
    if reply.status in TOO_MUCH_STATUSES and rows > 1:
        return BatchRefused(f"target: {said} to {rows} rows at once.").advised(words("Give a smaller {batch}."))
    if reply.status < 500:
        if reply.status == NOT_FOUND or not rows:
            return TargetRefused(
                f"target: {said}, expected an answer. Check the address, and the name of the model in it."
            )
        ranges = ", and the range of inputs that it takes ({domain})" if reply.status in TOO_MUCH_STATUSES else ""
        refused = TargetRefused(f"target: {said}, expected an answer.", these_rows=reply.status in TOO_MUCH_STATUSES)
        return refused.advised(
            words("Check the address, the request ({request}, {dim}, {datatype}, {encoding})" + ranges + ".")
        )
    return TargetUnavailable(f"target: {said}, expected an answer.", replied=True).advised(
        words(
            "If it happens now and then, raise {retries}. If it takes only a fixed number of rows, give {batch}. "
            "If it never answers, check {dim}."
        )
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


class RateLimit:
    """Spaces requests out so that at most `rate` rows a second are sent, whoever sends them."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self._clock, self._sleep = clock, sleep
        self._free_at = clock()
        self._lock = threading.Lock()

    def wait(self, rows: int) -> None:
        """Wait for the turn of a request of so many rows."""
        with self._lock:
            now = self._clock()
            turn = max(self._free_at, now)
            self._free_at = turn + (rows / self.rate if self.rate else 0.0)
        if turn > now:
            self._sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Let nothing go for so long: the server asked for it."""
        with self._lock:
            self._free_at = max(self._free_at, self._clock() + seconds)


@cache
def _orjson() -> Any:
    try:
        return importlib.import_module("orjson")
    except ImportError:
        return None


def number_list(numbers: Any) -> bytes:
    """A JSON list of the numbers, nested as the array is; each reads back as the same number of its format."""
    fast = _orjson()
    if fast is None:
        return json.dumps(numbers.tolist()).encode()
    return bytes(fast.dumps(np.ascontiguousarray(numbers), option=fast.OPT_SERIALIZE_NUMPY))


def read_json(text: bytes) -> Any:
    """The data, NaN and Infinity included, which only the standard library reads; ValueError if it is no JSON."""
    fast = _orjson()
    if fast is not None:
        try:
            return fast.loads(text)
        except ValueError:
            pass  # NaN, or no JSON at all
    return json.loads(text)
