"""A small server of the Open Inference Protocol v2 with faults on demand.

    with ModelServer(network, dim=4) as server:
        oracle = rl.open_oracle(server.url)

It speaks JSON and binary tensors, lists its models, and has a plain JSON endpoint beside (`server.plain_url`).
`faults(i)` names what goes wrong with the i-th question; see `Fault`. From the command line it serves a network:
`python -m reluctant.testing.server network.npz`.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray


class Fault(StrEnum):
    """What can go wrong with one question."""

    DROP = "the connection is closed before anything is computed"
    DROP_AFTER = "the rows are computed, then the connection is closed"
    BUSY = "503 with Retry-After"
    LIMITED = "429 with Retry-After"
    ERROR = "500"
    TRUNCATE = "the reply breaks off in the middle"
    GARBLE = "the reply is whole, but no JSON"
    SHORT = "fewer answers than rows"
    DUPLICATE = "the reply is sent twice"
    STALE = "the reply to an earlier question is sent"
    NAN = "the first answer is NaN"
    SLOW = "the reply comes late"
    TRICKLE = "the reply comes byte by byte"


Schedule = Callable[[int], "Fault | None"]


def every(period: int, *faults: Fault) -> Schedule:
    """A schedule of these faults in turn, one every `period` questions, none at the first."""
    return lambda i: faults[(i // period) % len(faults)] if i % period == period - 1 else None


def at(faults: Mapping[int, Fault]) -> Schedule:
    """Faults by the number of the question."""
    return faults.get


HEADER_LENGTH = "Inference-Header-Content-Length"
TENSOR_FORMATS: dict[str, np.dtype[Any]] = {"FP32": np.dtype("<f4"), "FP64": np.dtype("<f8")}

Reply: TypeAlias = tuple[bytes, dict[str, str]]  # body and headers


class Refusal(Exception):
    """A request that is answered with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def rows_of(tensor: dict[str, Any], raw: bytes | None, dim: int) -> FloatArray:
    """Rows (n, dim) of an input tensor, its numbers in JSON or as bytes."""
    kind = TENSOR_FORMATS.get(tensor["datatype"])
    if kind is None or tensor["shape"][1:] != [dim]:
        raise Refusal(400, f"rows of {dim} numbers are wanted, got {tensor['shape']}")
    numbers = np.array(tensor["data"], dtype=np.float64) if raw is None else np.frombuffer(raw, kind)
    return numbers.reshape(tensor["shape"]).astype(np.float64)


def encoded(reply: dict[str, Any], tensors: dict[str, FloatArray], datatype: str, binary: bool) -> Reply:
    """The reply with its output tensors, and the headers that go with it."""
    outputs: list[dict[str, Any]] = [
        {"name": name, "datatype": datatype, "shape": list(numbers.shape)} for name, numbers in tensors.items()
    ]
    reply = {**reply, "outputs": outputs}
    if not binary:
        for tensor, numbers in zip(outputs, tensors.values(), strict=True):
            tensor["data"] = numbers.reshape(-1).tolist()
        return json.dumps(reply).encode(), {}
    parts = [numbers.astype(TENSOR_FORMATS[datatype]).tobytes() for numbers in tensors.values()]
    for tensor, part in zip(outputs, parts, strict=True):
        tensor["parameters"] = {"binary_data_size": len(part)}
    head, data = json.dumps(reply).encode(), b"".join(parts)
    return head + data, {HEADER_LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}


def with_nan(body: bytes, headers: dict[str, str], datatype: str) -> bytes:
    """The reply with NaN for its first answer."""
    if HEADER_LENGTH not in headers:
        reply = json.loads(body)
        numbers = reply["outputs"][0]["data"] if "outputs" in reply else reply["predictions"][0]
        numbers[0] = float("nan")
        return json.dumps(reply).encode()
    start, kind = int(headers[HEADER_LENGTH]), TENSOR_FORMATS[datatype]
    return body[:start] + np.array([np.nan], kind).tobytes() + body[start + kind.itemsize :]


def shortened(body: bytes, headers: dict[str, str]) -> bytes:
    """The reply with half of its answers."""
    if HEADER_LENGTH in headers:
        start = int(headers[HEADER_LENGTH])
        return body[: start + (len(body) - start) // 2]
    reply = json.loads(body)
    numbers = reply["outputs"][0]["data"] if "outputs" in reply else reply["predictions"]
    del numbers[len(numbers) // 2 :]
    return json.dumps(reply).encode()


class Handler(BaseHTTPRequestHandler):
    """Requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Listener

    @property
    def model(self) -> ModelServer:
        """The served function."""
        return self.server.model

    def setup(self) -> None:
        """The connection may be cut from now on."""
        super().setup()
        self.server.open_sockets.add(self.connection)

    def finish(self) -> None:
        """Note that the connection is closed."""
        self.server.open_sockets.discard(self.connection)
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Silent."""

    # ---- the two verbs

    def do_GET(self) -> None:
        """The state of the server, and its model."""
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
        if model.gradients is not None:
            tensors["outputs"].append(
                {"name": GRADIENTS, "datatype": model.datatype, "shape": [-1, model.outputs, model.dim]}
            )
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
        tensors = {"y": model.compute(rows)}
        wanted = [output["name"] for output in request.get("outputs", [])] or ["y", GRADIENTS]
        if model.gradients is not None and GRADIENTS in wanted:
            tensors[GRADIENTS] = model.rounded(model.gradients, rows)
        return encoded(about, tensors, model.datatype, bool(length))

    def _predict(self, body: bytes) -> Reply:
        rows = np.array(json.loads(body)["instances"], dtype=np.float64)
        self._check_size(len(rows))
        self._check_range(rows)
        reply = {"predictions": self.model.compute(rows).tolist()}
        if self.model.gradients is not None:
            reply |= {GRADIENTS: self.model.rounded(self.model.gradients, rows).tolist()}
        return json.dumps(reply).encode(), {}

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


GRADIENTS = "gradients"  # name of their tensor, and their key in a plain reply
UNKNOWN_SIZE = -1  # a size that the metadata leave open, as the protocol writes it


class ModelServer:
    """Serves a function of rows; started by `with`, on a port of its own.

    Arguments:
        function: (n, d) -> (n,) or (n, m).
        dim: number of inputs.
        name: name of the model.
        outputs: number of outputs, for the metadata; absent there unless the function says (`function.outputs`).
        datatype: number format of rows and answers.
        describes: give inputs and outputs in the metadata.
        binary: speak the binary extension; else such a request is refused with 422, as MLServer does.
        most_rows: rows a request at most; more are refused with 413.
        accepts: (low, high) of every number of a row; a request with another is refused with 422.
        out_of_range: what goes wrong with such a request instead: the connection is dropped, or it is answered 500.
        token: the Authorization header that is asked for.
        faults: what goes wrong with the i-th question.
        certificate: PEM files of certificate and key, to serve over TLS.
        gradients: (n, d) -> (n, m, d), answered beside in a tensor of that name.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], Any],
        dim: int,
        *,
        name: str = "model",
        outputs: int | None = None,
        datatype: str = "FP64",
        describes: bool = True,
        binary: bool = True,
        most_rows: int | None = None,
        accepts: tuple[float, float] | None = None,
        out_of_range: Fault | None = None,
        token: str | None = None,
        faults: Schedule = lambda i: None,
        certificate: tuple[str, str] | None = None,
        gradients: Callable[[FloatArray], Any] | None = None,
    ) -> None:
        self.gradients = gradients
        self.function, self.dim, self.name, self.datatype = function, dim, name, datatype
        self.outputs = outputs if outputs is not None else getattr(function, "outputs", UNKNOWN_SIZE)
        self.describes, self.binary, self.most_rows, self.token = describes, binary, most_rows, token
        self.accepts, self.out_of_range, self.faults, self.certificate = accepts, out_of_range, faults, certificate
        self.version = "1"
        self.retry_after: str | None = "0"  # seconds or a date, sent with 429 and 503
        self.slowness = 0.05  # seconds of a slow reply
        self.rows = 0  # computed so far
        self.sizes: list[int] = []  # rows of every question that was computed
        self.questions = 0
        self.last_reply = b""
        self.lock = threading.Lock()
        self._address = ("127.0.0.1", 0)
        self._http: Listener | None = None

    @property
    def base(self) -> str:
        """Scheme, host and port."""
        return f"{'https' if self.certificate else 'http'}://localhost:{self._address[1]}"

    @property
    def url(self) -> str:
        """Address of the model."""
        return f"{self.base}/v2/models/{self.name}"

    @property
    def plain_url(self) -> str:
        """Address of the plain endpoint: {"instances": rows} gives {"predictions": answers}."""
        return f"{self.base}/predict"

    def start(self) -> None:
        """Listen; after `stop`, on the same port."""
        self._http = Listener(self._address, self)
        self._address = ("127.0.0.1", self._http.server_port)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Die: every connection is cut, and new ones are refused."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http.cut()
            self._http = None

    def die_for(self, seconds: float) -> None:
        """Die now and come back later."""
        self.stop()
        threading.Timer(seconds, self.start).start()

    def compute(self, rows: FloatArray) -> FloatArray:
        """Answers in the served number format; every row is counted."""
        with self.lock:
            self.rows += len(rows)
            self.sizes.append(len(rows))
            function = self.function
        return self.rounded(function, rows).reshape(len(rows), -1)

    def rounded(self, function: Callable[[FloatArray], Any], rows: FloatArray) -> FloatArray:
        """The answers of a function, in and out of the served number format."""
        kind = TENSOR_FORMATS[self.datatype]
        return np.asarray(function(rows.astype(kind).astype(np.float64))).astype(kind).astype(np.float64)

    def next_fault(self) -> Fault | None:
        """What goes wrong with the question that has just come in."""
        with self.lock:
            self.questions += 1
            return self.faults(self.questions - 1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Listener(ThreadingHTTPServer):
    """The listening socket, and the connections to be cut when it dies."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], model: ModelServer) -> None:
        self.model = model
        self.open_sockets: set[socket.socket] = set()
        super().__init__(address, Handler)
        if model.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*model.certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def cut(self) -> None:
        """Cut every connection."""
        for connection in list(self.open_sockets):
            shut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is what this server is for."""


def main() -> None:
    """Serve the network of the file that is named."""
    network = ReLUNetwork.load(sys.argv[1])
    with ModelServer(network, network.dim, outputs=network.outputs) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
