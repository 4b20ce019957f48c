"""Adapters: the oracles that stand next to a target. `dispatch` finds the one for a target."""

__all__: list[str] = []
