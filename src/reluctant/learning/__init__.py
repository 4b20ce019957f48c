"""Learning: any network with one hidden layer, without general position."""

__all__: list[str] = []
