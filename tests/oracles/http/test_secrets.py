"""The credential goes into a header and nowhere else: no transcript, log, record, text form or error has it."""

from __future__ import annotations

import logging
import pickle
import shutil
import ssl
import subprocess
import traceback
from pathlib import Path

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, TargetRefused
from reluctant.oracles.http.security import HIDDEN, Secret
from reluctant.run_record import Record
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer, at

SECRET = "s3cr3t-t0ken-0123456789"
NETWORK = planted((4, 3, 1), 1)
ROWS = np.ones((3, 4))


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_TOKEN", SECRET)


def serve(**settings: object) -> ModelServer:
    return ModelServer(NETWORK, 4, token=f"Bearer {SECRET}", **settings)


def test_the_credential_opens_the_door() -> None:
    with serve() as server, rl.open_oracle(server.url, auth_env="MODEL_TOKEN") as oracle:
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)


def test_without_it_the_error_says_what_to_do() -> None:
    with serve() as server, pytest.raises(TargetRefused, match=r"401.*auth_env="):
        rl.open_oracle(server.url)


def test_other_headers_carry_it_as_it_is() -> None:
    assert Secret("MODEL_TOKEN").header("X-API-Key") == {"X-API-Key": SECRET}
    assert Secret("MODEL_TOKEN").header("authorization") == {"authorization": f"Bearer {SECRET}"}


def test_a_scheme_of_its_own_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_TOKEN", "Basic dXNlcjpwYXNz")
    assert Secret("MODEL_TOKEN").header("Authorization") == {"Authorization": "Basic dXNlcjpwYXNz"}
    assert Secret("MODEL_TOKEN").scrub("you sent dXNlcjpwYXNz") == f"you sent {HIDDEN}"


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines"])
def test_a_variable_that_holds_none_is_named(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_TOKEN")
    if value is not None:
        monkeypatch.setenv("MODEL_TOKEN", value)
    with pytest.raises(InvalidInput, match=r"^auth_env: got 'MODEL_TOKEN', which is (not set or empty|no header)"):
        rl.open_oracle("http://localhost:1/v2/models/x", auth_env="MODEL_TOKEN")


def test_it_is_written_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    faults = at({4: Fault.DROP, 7: Fault.BUSY})
    with serve(faults=faults) as server:
        folder = tmp_path / "answers"
        with rl.open_oracle(server.url, auth_env="MODEL_TOKEN", transcript=folder, keep_rows=True) as oracle:
            result = rl.extract(oracle, rng=0)
            record = Record.of(oracle, "extract", 0, result.ok, extraction=result)
            texts = [repr(oracle), str(oracle.facts), repr(oracle.__dict__), repr(result), record.to_json()]
            texts += [repr(layer) for layer in vars(oracle.inner.inner).values()]
    texts += [caplog.text, *(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())]
    assert result.ok
    assert not any(SECRET in text for text in texts)


def test_an_error_does_not_have_it_even_if_the_server_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as server:
        monkeypatch.setenv("MODEL_TOKEN", SECRET + "-wrong")
        with pytest.raises(TargetRefused) as caught:
            rl.open_oracle(server.url, auth_env="MODEL_TOKEN")
        said = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert HIDDEN in said
        assert "MODEL_TOKEN" in said
        assert SECRET not in said


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.TRUNCATE, Fault.BUSY, Fault.ERROR, Fault.GARBLE])
def test_no_failed_request_carries_it(fault: Fault) -> None:
    with (
        serve(faults=at(dict.fromkeys(range(9), fault))) as server,
        rl.open_oracle(server.url, auth_env="MODEL_TOKEN", retries=0) as oracle,
        pytest.raises(rl.ReluctantError) as caught,
    ):
        oracle.query(ROWS)
    said = "".join(traceback.format_exception(caught.value, chain=True)) + repr(vars(caught.value))
    assert SECRET not in said
    assert caught.value.__cause__ is None


def test_it_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(Secret("MODEL_TOKEN"))
    assert repr(Secret("MODEL_TOKEN")) == "Secret(MODEL_TOKEN)"


@pytest.mark.parametrize("url", ["http://user:pass@localhost:1/v2/models/x", "https://key@localhost/v2/models/x"])
def test_credentials_in_an_address_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^target: got an address with credentials in it") as caught:
        rl.open_oracle(url)
    assert "pass" not in str(caught.value)


def test_a_query_is_not_shown() -> None:
    with ModelServer(NETWORK, 4) as server:
        url = f"{server.plain_url}?key={SECRET}"
        with rl.open_oracle(url, dim=4, request='{"instances": "$rows"}', reply="predictions") as oracle:
            texts = [repr(oracle), str(oracle.facts), Record.of(oracle, "health", 0, True).to_json()]
        assert not any(SECRET in text for text in texts)


# ---- TLS


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for localhost that nobody has signed but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make a certificate")
    names = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-out", names[0], "-keyout", names[1]], check=True, capture_output=True)
    return names


def test_a_certificate_that_cannot_be_verified_is_refused(certificate: tuple[str, str]) -> None:
    with serve(certificate=certificate) as server, pytest.raises(InvalidInput, match=r"certificate .*ca="):
        rl.open_oracle(server.url, auth_env="MODEL_TOKEN")


def test_a_private_authority_is_trusted_where_it_is_given(certificate: tuple[str, str]) -> None:
    with (
        serve(certificate=certificate) as server,
        rl.open_oracle(server.url, auth_env="MODEL_TOKEN", ca=certificate[0]) as oracle,
    ):
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
        assert server.url.startswith("https://")


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^ca: got "):
        rl.open_oracle("https://localhost:1/v2/models/x", ca=tmp_path / "none.pem")


def test_nothing_is_accepted_unverified() -> None:
    from reluctant.oracles.http.transport import _trusted_authorities

    context = _trusted_authorities(None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
