"""Oracles: one verb, `query(X)`; adapters connect targets, and wrappers are oracles around oracles."""

from reluctant.oracles.adapters.dispatch import CallableOracle, NetworkOracle
from reluctant.oracles.base import Explained, Facts, Kind, Oracle, Wrapper
from reluctant.oracles.keywords import Reading, Recording, Serving
from reluctant.oracles.ledger import Counting, Ledger, Metered, Rows, Timed
from reluctant.oracles.links import Linked
from reluctant.oracles.open import Target, open_oracle
from reluctant.oracles.retry import Retrying
from reluctant.oracles.transcript import Transcript
from reluctant.oracles.wrappers import Selected

__all__ = [
    "CallableOracle",
    "Counting",
    "Explained",
    "Facts",
    "Kind",
    "Ledger",
    "Linked",
    "Metered",
    "NetworkOracle",
    "Oracle",
    "Reading",
    "Recording",
    "Retrying",
    "Rows",
    "Selected",
    "Serving",
    "Target",
    "Timed",
    "Transcript",
    "Wrapper",
    "open_oracle",
]
