"""Adapters: the oracles next to a target; `dispatch` chooses the one for it."""

__all__: list[str] = []
