"""`ModelServer`: a function of rows behind a port, and what became of the questions to it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any, Self

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.testing.server.faults import Fault, Schedule
from reluctant.testing.server.handler import Handler, shut
from reluctant.testing.server.tensors import FORMATS

__all__ = ["Listener", "ModelServer"]

NOT_TOLD = -1  # a size that the metadata leave open, as the protocol writes it


class ModelServer:
    """Serves a function of rows; started by `with`, on a port of its own.

    Arguments:
        function: (n, d) -> (n,) or (n, m).
        dim: number of inputs.
        name: name of the model.
        outputs: number of outputs, for the metadata; not told there unless the function says (`function.outputs`).
        datatype: number format of rows and answers.
        describes: give inputs and outputs in the metadata.
        binary: speak the binary extension; else such a request is refused with 422, as MLServer does.
        most_rows: rows a request at most; more are refused with 413.
        accepts: (low, high) of every number of a row; a request with another is refused with 422.
        out_of_range: what goes wrong with such a request instead: the connection is dropped, or it is answered 500.
        token: the Authorization header that is asked for.
        faults: what goes wrong with the i-th question.
        certificate: PEM files of certificate and key, to serve over TLS.
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
    ) -> None:
        self.function, self.dim, self.name, self.datatype = function, dim, name, datatype
        self.outputs = outputs if outputs is not None else getattr(function, "outputs", NOT_TOLD)
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
        kind = FORMATS[self.datatype]
        with self.lock:
            self.rows += len(rows)
            self.sizes.append(len(rows))
            function = self.function
        answers = np.asarray(function(rows.astype(kind).astype(np.float64))).reshape(len(rows), -1)
        return answers.astype(kind).astype(np.float64)

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
