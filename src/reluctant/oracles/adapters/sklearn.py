"""Adapter for a fitted scikit-learn model: an MLP, a pipeline with one, or any other that predicts numbers."""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from reluctant.errors import InvalidInput, TargetError, require, words
from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Facts, Kind, Oracle, as_answers

LONGEST_QUOTE = 80  # characters of what a model said


class SklearnOracle(Oracle):
    """Asks a fitted model through scikit-learn's own prediction.

    A classifier answers one probability per class (`predict_proba`), or the values that it decides by where it has no
    probabilities (`decision_function`). Any other model answers what it predicts. precision="float64" converts the
    coefficients of an MLP that was fitted in float32; pipelines compute in float64 as they are.
    """

    def __init__(self, model: Any, precision: Literal["as-served", "float64"] = "as-served") -> None:
        base = require("sklearn.base", extra="sklearn", purpose="Asking a scikit-learn model")
        verb = next((name for name in _verbs(base.is_classifier(model)) if hasattr(model, name)), None)
        if verb is None or not hasattr(model, "n_features_in_"):
            raise InvalidInput.about(
                "target", got=type(model).__name__, expected="a fitted model that predicts",
                fix="Call fit first." if verb is not None else words("Pass a function of its own, with {dim}."),
            )  # fmt: skip
        self._model = _recast_model(model, np.float64) if precision == "float64" and _is_network(model) else model
        self._predict: Callable[[FloatArray], Any] = getattr(self._model, verb)
        dtype = self._model.coefs_[0].dtype if _is_network(self._model) else np.dtype(np.float64)
        zeros = np.zeros((1, self._model.n_features_in_), dtype)
        first = _first_answer(self._predict, zeros)
        self._facts = Facts(
            dim=int(self._model.n_features_in_),
            outputs=as_answers(first, 1, None).shape[1],
            dtype=dtype,
            kind=Kind.PROBABILITIES if verb == "predict_proba" else Kind.VALUES,
            name=type(self._model).__name__,
            identity=_model_identity(self._model),
            recast=dtype != np.float64,
        )

    @property
    def facts(self) -> Facts:
        """Facts read off the fitted model."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Predict."""
        raw = call_target(self._predict, rows.astype(self._facts.dtype, copy=False))
        return as_answers(raw, len(rows), self._facts.outputs)

    def __repr__(self) -> str:
        return f"SklearnOracle({self._facts.name})"


def _first_answer(predict: Callable[[FloatArray], Any], zeros: FloatArray) -> object:
    """The answer to a row of numbers; a model that takes texts, categories or named columns is named as such."""
    try:
        return call_target(predict, zeros)
    except TargetError as error:
        refused = error.__cause__
        if not isinstance(refused, TypeError | ValueError):
            raise
        said = str(refused).partition("\n")[0][:LONGEST_QUOTE]
        raise InvalidInput.about(
            "target", got=f"{type(refused).__name__} for numbers ({said})", expected="a model of numbers alone",
            fix=words("Pass the steps after those that take texts, categories or named columns, or a function of "
                      "encoded columns with {dim}."),
        ) from error  # fmt: skip


def _verbs(classifies: bool) -> tuple[str, ...]:
    """Methods to ask, the one that gives most first."""
    return ("predict_proba", "decision_function", "predict") if classifies else ("predict",)


def _is_network(model: Any) -> bool:
    return hasattr(model, "coefs_") and hasattr(model, "out_activation_")


def _recast_model(model: Any, dtype: Any) -> Any:
    clone = copy.deepcopy(model)
    clone.coefs_ = [w.astype(dtype) for w in model.coefs_]
    clone.intercepts_ = [b.astype(dtype) for b in model.intercepts_]
    return clone


def _model_identity(model: Any) -> str:
    if not _is_network(model):
        return f"sklearn sha256:{hashlib.sha256(pickle.dumps(model)).hexdigest()}"
    digest = hashlib.sha256(f"{model.activation} {model.out_activation_}".encode())
    for array in (*model.coefs_, *model.intercepts_):
        digest.update(array.tobytes())
    return f"sklearn sha256:{digest.hexdigest()} {model.coefs_[0].dtype}"
