"""Fits: one damped least-squares loop, the fit of a whole network, and training by mini-batches."""

__all__: list[str] = []
