"""Learning: any network with one hidden layer, without general position."""

__all__ = ["closeness", "paper", "theory"]
