"""`reluctant audit`: what can be taken from a model, as a report and a record."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from reluctant.audit import LEAKS, Audit, not_opened
from reluctant.audit import audit as audit_target
from reluctant.audit.driver import SWEEP_SECONDS, Watch
from reluctant.audit.record import StepRecord
from reluctant.audit.shares import BUDGET
from reluctant.cli.console import progress
from reluctant.cli.files import check_record_path, write_record
from reluctant.cli.inputs import read_array
from reluctant.cli.targets import INTERRUPTED, TargetArgument, TargetOptions, with_target_options
from reluctant.errors import (
    InvalidInput,
    MissingDependency,
    ReluctantError,
    TargetError,
    UnknownTarget,
    UnsafeFile,
    UnsupportedModel,
)
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["audit"]

# What keeps a target from being opened: a report says so. Any other bad argument is a mistake at the keyboard.
NOT_OPENED = (TargetError, UnknownTarget, UnsafeFile, UnsupportedModel, MissingDependency)
FILES = (".onnx", ".npz")
SHAPE = "height,width like 28,28"
STOPPED_BY_USER = 130
