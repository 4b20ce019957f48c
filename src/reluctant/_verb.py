"""Packages that can be called like the verb they are named after.

`rl.audit` is the package `reluctant.audit` and the verb `audit` at once, whichever of the two was imported first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def callable_as(package: str, verb: Callable[..., Any]) -> None:
    """Let a call of this package be one of the verb; `help` and `inspect.signature` show the verb's arguments."""
    called = {"__call__": staticmethod(verb), "__wrapped__": staticmethod(verb)}
    sys.modules[package].__class__ = type("VerbPackage", (ModuleType,), called)
