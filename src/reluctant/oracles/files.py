"""From what a user names to an adapter: paths, `module:attribute`, files that can run code."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

from reluctant.errors import InvalidInput, MissingDependency, UnknownTarget, UnsafeFile
from reluctant.optional import require

__all__ = ["CODE_SUFFIXES", "import_target", "load_code_file"]

# Loading these runs whatever their author put in.
CODE_SUFFIXES = {".pkl", ".pickle", ".joblib", ".pt", ".pth"}


def load_code_file(path: Path, trust_code: bool) -> Any:
    """Load a pickled model or torch module, only if the user said so."""
    if not trust_code:
        raise UnsafeFile.about(
            "target", got=f"'{path}'", expected="a file that cannot run code (.onnx, .npz)",
            fix="If you made it yourself, pass trust_code=True (--trust-code); better, export it to ONNX.",
        )  # fmt: skip
    try:
        return _load(path)
    except MissingDependency:
        raise
    except Exception as error:  # unpickling runs foreign code, which may raise anything
        raise UnknownTarget.about("target", got=f"'{path}' ({error})", expected="a readable model file") from error


def _load(path: Path) -> Any:
    if path.suffix in {".pt", ".pth"}:
        torch = require("torch", extra="torch", purpose="Loading a torch file")
        return torch.load(path, weights_only=False, map_location="cpu")
    if path.suffix == ".joblib":
        return require("joblib", extra="sklearn", purpose="Loading a .joblib file").load(path)
    with path.open("rb") as file:
        return pickle.load(file)


def import_target(name: str) -> Any:
    """Import `module:attribute`, looking in the working folder first."""
    module_name, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        target = importlib.import_module(module_name)
        for part in attribute.split("."):
            target = getattr(target, part)
    except Exception as error:  # importing runs the module, which may raise anything
        raise UnknownTarget.about(
            "target",
            got=f"'{name}' ({type(error).__name__}: {error})",
            expected="module:attribute of something importable",
            fix="Check both names; a module is looked for in this folder first, then where Python looks (PYTHONPATH).",
        ) from error
    if isinstance(target, str | Path):
        raise InvalidInput.about("target", got=f"'{name}', which is a string", expected="a callable or a model")
    return target
