"""The commands; `reluctant.cli.app` imports each when it runs."""

__all__: list[str] = []
