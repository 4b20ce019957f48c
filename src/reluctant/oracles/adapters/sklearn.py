"""Adapter for a fitted scikit-learn MLPClassifier (probabilities) or MLPRegressor (values)."""

from __future__ import annotations

import copy
import hashlib
from typing import Any, Literal

import numpy as np

from reluctant._optional import require
from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Facts, Kind, Oracle, as_answers


class SklearnOracle(Oracle):
    """Asks a fitted multi-layer perceptron through scikit-learn's own prediction.

    A classifier answers one probability per class (`predict_proba`), a regressor its values
    (`predict`). precision="float64" converts the coefficients of a model that was fitted in float32.
    """

    def __init__(self, model: Any, precision: Literal["as-served", "float64"] = "as-served") -> None:
        networks = require("sklearn.neural_network", extra="sklearn", purpose="Asking a scikit-learn model")
        known = isinstance(model, networks.MLPClassifier | networks.MLPRegressor)
        if not known or not hasattr(model, "coefs_"):
            raise InvalidInput.about(
                "target", got=f"{type(model).__name__}{'' if known else ', not an MLP'}",
                expected="a fitted MLPClassifier or MLPRegressor",
                fix="Call fit first." if known else "Pass its predict method, with dim=.",
            )  # fmt: skip
        self._model = _recast_model(model, np.float64) if precision == "float64" else model
        self._classifies = isinstance(model, networks.MLPClassifier)
        self._predict = self._model.predict_proba if self._classifies else self._model.predict
        self._facts = self._gather_facts()

    def _gather_facts(self) -> Facts:
        dtype = self._model.coefs_[0].dtype
        zeros = np.zeros((1, self._model.n_features_in_), dtype)
        return Facts(
            dim=int(self._model.n_features_in_),
            outputs=as_answers(call_target(self._predict, zeros), 1, None).shape[1],
            dtype=dtype,
            kind=Kind.PROBABILITIES if self._classifies else Kind.VALUES,
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


def _recast_model(model: Any, dtype: Any) -> Any:
    clone = copy.deepcopy(model)
    clone.coefs_ = [w.astype(dtype) for w in model.coefs_]
    clone.intercepts_ = [b.astype(dtype) for b in model.intercepts_]
    return clone


def _model_identity(model: Any) -> str:
    digest = hashlib.sha256(f"{model.activation} {model.out_activation_}".encode())
    for array in (*model.coefs_, *model.intercepts_):
        digest.update(array.tobytes())
    return f"sklearn sha256:{digest.hexdigest()} {model.coefs_[0].dtype}"
