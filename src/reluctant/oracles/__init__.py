"""Oracles: one verb, `query(X)`. Adapters stand before a target, wrappers are oracles around oracles."""

from reluctant.oracles.base import Facts, Kind, Oracle, Wrapper
from reluctant.oracles.budget import Metered
from reluctant.oracles.callable import CallableOracle
from reluctant.oracles.counting import Counting
from reluctant.oracles.ledger import Ledger, Rows
from reluctant.oracles.link import Linked
from reluctant.oracles.network import NetworkOracle
from reluctant.oracles.opening import open_oracle
from reluctant.oracles.retry import Retrying
from reluctant.oracles.selection import Selected
from reluctant.oracles.timeout import Timed
from reluctant.oracles.transcript import Transcript

__all__ = [
    "CallableOracle",
    "Counting",
    "Facts",
    "Kind",
    "Ledger",
    "Linked",
    "Metered",
    "NetworkOracle",
    "Oracle",
    "Retrying",
    "Rows",
    "Selected",
    "Timed",
    "Transcript",
    "Wrapper",
    "open_oracle",
]
