"""The verbs of the command line; `reluctant.cli.app` knows which module holds which, and imports it when it runs."""

__all__: list[str] = []
