"""The steps of an audit: each takes the target and what is known, and gives what is new."""

__all__: list[str] = []
