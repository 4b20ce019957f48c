"""Import of optional libraries, inside the function that uses them.

A missing one gives an error with the pip line that installs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from reluctant.errors import MissingDependency


def require(module: str, *, purpose: str, extra: str | None = None) -> Any:
    """Import `module`, or say how to install it: the extra of this package, else the library itself."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        wanted = f"'reluctant[{extra}]'" if extra else library
        raise MissingDependency(
            f"{purpose} needs {library}, which is not installed. Run: pip install {wanted}",
            name=library,
        ) from error
