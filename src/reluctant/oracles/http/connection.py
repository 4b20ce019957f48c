"""Connections to one server: kept open, timed, and thrown away when they are out of step.

A connection is a transport of httpx, without the client around it: no cookies, no redirects, no compression are
wanted, and each request costs half as much. Errors become ours here without their cause, so that no request with its
headers travels in an error.
"""

from __future__ import annotations

import queue
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from reluctant.errors import InvalidInput, ReluctantError, TargetBusy, TargetError, TargetTimeout, TargetUnavailable
from reluctant.optional import require
from reluctant.oracles.http.options import ServedOptions
from reluctant.oracles.http.pace import Pace
from reluctant.oracles.http.replies import Reply, failure_of
from reluctant.oracles.http.secret import Secret, scrub
from reluctant.oracles.http.shown import hidden_values, shown_url

__all__ = ["Server"]

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

    def __init__(self, url: str, options: ServedOptions, timeout: float | None) -> None:
        self._httpx = require("httpx", extra="http", purpose="Asking a served model")
        self.url, self.shown = url.rstrip("/"), shown_url(url)
        self.timeout = timeout or TIMEOUT_SECONDS
        self.pace = Pace(options.rate)
        self._auth_env = options.auth_env
        self._secret = None if options.auth_env is None else Secret(options.auth_env)
        self._hidden = hidden_values(url, options.request)
        self._headers = {} if self._secret is None else self._secret.header(options.auth_header)
        self._trust = _trusted(options.ca)
        self._proxy = _proxy(url)
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
        """The error that a reply stands for; all connections keep still if the server asks for it."""
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
                return Reply(response.status_code, _lower(response.headers), _read(httpx, response, deadline))
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
            error = TargetUnavailable(f"target: {where} was cut off ({problem}), expected an answer.")
        raise self.scrubbed(error) from None

    def scrubbed(self, error: E) -> E:
        """The error with the credential taken out of its text, and what is hidden of address and request."""
        error.args = tuple(self._scrub(part) if isinstance(part, str) else part for part in error.args)
        return error

    def _scrub(self, text: str) -> str:
        return scrub(text if self._secret is None else self._secret.scrub(text), self._hidden)

    def __repr__(self) -> str:
        return f"Server({self.shown})"


def _read(httpx: Any, response: Any, deadline: float) -> bytes:
    parts = []
    for part in response.iter_bytes():
        parts.append(part)
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the answer trickles in too slowly")
    return b"".join(parts)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this address."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def _unreachable(where: str, problem: str) -> TargetBusy:
    return TargetBusy(
        f"target: got no connection to {where} ({problem}), expected a server there. "
        "Check the address, and that it is running."
    )


def _untrusted(where: str, problem: str) -> InvalidInput:
    return InvalidInput.about(
        "target", got=f"a certificate of {where} that cannot be verified ({problem})", expected="one that can",
        fix="For a private authority give its certificate: ca= (--ca).",
    )  # fmt: skip


def _trusted(ca: str | Path | None) -> ssl.SSLContext:
    """The system's authorities, and one more if given; nothing is ever accepted unverified."""
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(cafile=str(ca))
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput.about("ca", got=f"'{ca}' ({error})", expected="a file of PEM certificates") from error
    return context
