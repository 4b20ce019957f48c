"""The adapter for an address, and the size of its first batches.

An address with credentials in it is refused. A server that is not there is noticed at once, before any row is sent.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from reluctant.errors import InvalidInput, TargetBusy, UnknownTarget, words
from reluctant.oracles.base import Kind, Oracle
from reluctant.oracles.http.inference_protocol import MODEL_PATH, OpenInferenceOracle
from reluctant.oracles.http.json_endpoint import JsonEndpointOracle
from reluctant.oracles.http.security import shown_url
from reluctant.oracles.http.served_oracle import ServedGradients
from reluctant.oracles.http.transport import Server
from reluctant.oracles.keywords import Serving

# The first batches: a body of a size that servers and the proxies before them take by default.
FIRST_BODY_BYTES = 2**20
BYTES_A_NUMBER = 8
MOST_FIRST_ROWS = 512  # times four connections: as many rows as a kill can lose of a local target


def open_served(
    url: str,
    options: Serving,
    shape: tuple[int, ...] | None,
    kind: Kind,
    timeout: float | None,
    gradients: ServedGradients | None = None,
) -> OpenInferenceOracle | JsonEndpointOracle:
    """The adapter for an address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its words may repeat a key
        raise UnknownTarget.about(
            "target", got="an address that cannot be read", expected="http(s)://host:port/..."
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnknownTarget.about("target", got=f"'{shown_url(url)}'", expected="an http or https address")
    if parts.username or parts.password:
        raise InvalidInput.about(
            "target", got="an address with credentials in it", expected="one without",
            fix=words("Put them into an environment variable and name it: {auth_env}.", auth_env="NAME"),
        )  # fmt: skip
    plain = options.request is not None
    if not plain and not MODEL_PATH.match(urlsplit(url).path):
        raise UnknownTarget.about(
            "target", got=f"'{shown_url(url)}'", expected="http(s)://host:port/v2/models/NAME",
            fix=words(
                "For a service of another kind say what to send and where the answers are: {request}, {reply}.",
                request='{"instances": "$rows"}', reply="predictions",
            ),
        )  # fmt: skip
    if not plain and (urlsplit(url).query or urlsplit(url).fragment):
        raise InvalidInput.about("target", got=f"'{shown_url(url)}' with more after it", expected="one without")
    server = Server(url, options, timeout)
    try:
        try:
            server.send("HEAD", server.url)
        except TargetBusy as error:
            raise UnknownTarget(error.words) from None
        return (JsonEndpointOracle if plain else OpenInferenceOracle)(server, options, shape, kind, gradients)
    except BaseException:
        server.close()
        raise


def first_batch(adapter: Oracle, options: Serving) -> int:
    """How many rows the first requests have: what the user says, what the model fixes, or a modest body."""
    fixed = getattr(adapter, "batch", None)
    wanted = options.batch or modest_rows(adapter.dim)
    return min(wanted, fixed or wanted)


def modest_rows(dim: int) -> int:
    """Rows of a body that most servers take."""
    return min(max(FIRST_BODY_BYTES // (BYTES_A_NUMBER * dim), 1), MOST_FIRST_ROWS)
