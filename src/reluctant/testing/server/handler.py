"""One connection to the server: what it asks for, what it is told, and what goes wrong on the way."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.testing.server.faults import Fault
from reluctant.testing.server.tensors import HEADER_LENGTH, Refusal, Reply, encoded, rows_of, shortened, with_nan

if TYPE_CHECKING:
    from reluctant.testing.server.model import Listener, ModelServer

__all__ = ["Handler", "shut"]


class Handler(BaseHTTPRequestHandler):
    """Requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Listener

    @property
    def model(self) -> ModelServer:
        """What is served."""
        return self.server.model

    def setup(self) -> None:
        """The connection may be cut from now on."""
        super().setup()
        self.server.open_sockets.add(self.connection)

    def finish(self) -> None:
        """It is closed."""
        self.server.open_sockets.discard(self.connection)
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Silent."""

    # ---- the two verbs

    def do_GET(self) -> None:
        """What the server has, and what the model is."""
        model = self.model
        known = {
            "/v2": {"name": "reluctant test server", "extensions": ["binary_tensor_data"] if model.binary else []},
            "/v2/models": {"models": [model.name]},
            f"/v2/models/{model.name}": self._metadata(),
            f"/v2/models/{model.name}/ready": {"ready": True},
        }
        try:
            self._check_token()
            if self.path not in known:
                raise Refusal(404, "Model not found")
            self._send(200, json.dumps(known[self.path]).encode())
        except Refusal as refusal:
            self._refuse(refusal)

    def do_POST(self) -> None:
        """Questions, and the list of models."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, _ = self.path.partition("?")
        try:
            self._check_token()
            if path == "/v2/repository/index":
                self._send(200, json.dumps([{"name": self.model.name}]).encode())
            elif path == f"/v2/models/{self.model.name}/infer":
                self._question(lambda: self._infer(body))
            elif path == "/predict":
                self._question(lambda: self._predict(body))
            else:
                raise Refusal(404, f"Model not found: {self.path}")
        except Refusal as refusal:
            self._refuse(refusal)

    def _check_token(self) -> None:
        said = self.headers.get("Authorization")
        if self.model.token is not None and said != self.model.token:
            raise Refusal(401, f"not the credential that is wanted: {said}")

    def _metadata(self) -> dict[str, Any]:
        model = self.model
        tensors = {
            "inputs": [{"name": "x", "datatype": model.datatype, "shape": [-1, model.dim]}],
            "outputs": [{"name": "y", "datatype": model.datatype, "shape": [-1, model.outputs]}],
        }
        return {"name": model.name, "platform": "test", **(tensors if model.describes else {})}

    # ---- questions

    def _question(self, work: Callable[[], Reply]) -> None:
        fault = self.model.next_fault()
        self._fail(fault)
        body, headers = work()
        if fault is Fault.NAN:
            body = with_nan(body, headers, self.model.datatype)
        elif fault is Fault.SHORT:
            body = shortened(body, headers)
        elif fault is Fault.SLOW:
            time.sleep(self.model.slowness)
        earlier, self.model.last_reply = self.model.last_reply, body
        self._reply(earlier or body if fault is Fault.STALE else body, headers, fault)

    def _fail(self, fault: Fault | None) -> None:
        """Answer nothing, where that is the fault."""
        if fault is Fault.DROP:
            shut(self.connection)
            raise ConnectionAbortedError(str(fault))
        if fault in (Fault.BUSY, Fault.LIMITED, Fault.ERROR):
            raise Refusal({Fault.BUSY: 503, Fault.LIMITED: 429}.get(fault, 500), str(fault))

    def _reply(self, body: bytes, headers: dict[str, str], fault: Fault | None) -> None:
        if fault is Fault.DROP_AFTER:
            shut(self.connection)
        elif fault is Fault.TRUNCATE:
            self._send(200, body, headers, sent=len(body) // 2)
            shut(self.connection)
        elif fault is Fault.GARBLE:
            self._send(200, body[: len(body) // 2], {"Content-Type": "application/json"})
        elif fault is Fault.TRICKLE:
            self._send(200, body, headers, sent=0)
            for i in range(len(body)):
                self.wfile.write(body[i : i + 1])
                self.wfile.flush()
                time.sleep(self.model.slowness)
        else:
            self._send(200, body, headers)
            if fault is Fault.DUPLICATE:
                self._send(200, body, headers)

    def _infer(self, body: bytes) -> Reply:
        model, length = self.model, self.headers.get(HEADER_LENGTH)
        if length and not model.binary:
            raise Refusal(422, "no binary tensors here")
        request = json.loads(body[: int(length)] if length else body)
        tensor = request["inputs"][0]
        self._check_size(tensor["shape"][0])
        rows = rows_of(tensor, body[int(length) :] if length else None, model.dim)
        self._check_range(rows)
        about = {"model_name": model.name, "model_version": model.version, "id": request.get("id")}
        return encoded(about, model.compute(rows), model.datatype, bool(length))

    def _predict(self, body: bytes) -> Reply:
        rows = np.array(json.loads(body)["instances"], dtype=np.float64)
        self._check_size(len(rows))
        self._check_range(rows)
        return json.dumps({"predictions": self.model.compute(rows).tolist()}).encode(), {}

    def _check_size(self, rows: int) -> None:
        if self.model.most_rows is not None and rows > self.model.most_rows:
            raise Refusal(413, f"at most {self.model.most_rows} rows")

    def _check_range(self, rows: FloatArray) -> None:
        low, high = self.model.accepts or (-np.inf, np.inf)
        if rows.min() < low or rows.max() > high:
            self._fail(self.model.out_of_range)
            raise Refusal(422, f"inputs must lie between {low:g} and {high:g}")

    # ---- sending

    def _refuse(self, refusal: Refusal) -> None:
        wait = self.model.retry_after if refusal.status in (429, 503) else None
        headers = {} if wait is None else {"Retry-After": wait}
        self._send(refusal.status, json.dumps({"error": str(refusal)}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, sent: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if sent is None else body[:sent])
        self.wfile.flush()


def shut(connection: socket.socket) -> None:
    """Cut a connection."""
    with suppress(OSError):  # it may be gone already
        connection.shutdown(socket.SHUT_RDWR)
