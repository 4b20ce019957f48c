"""ReLU networks: the type, its symmetries, its files."""

from reluctant.networks.network import LocalMaps, ReLUNetwork
from reluctant.networks.symmetry import Matching, canonical, equivalent, match

__all__ = ["LocalMaps", "Matching", "ReLUNetwork", "canonical", "equivalent", "match"]
