"""Adapter for a torch module, in the format of its parameters or re-cast to float64.

A module on a device is asked there: described rows are written out beside it, and a batch that does not fit into
its memory is asked again in parts.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from math import prod
from typing import Any, Literal

import numpy as np

from reluctant.errors import InvalidInput, N, TargetUnavailable, require, words
from reluctant.numerics import FLOAT_BYTES, HOST, Arrays, FloatArray, TorchArrays, joined
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Explained, Facts, Kind, Moves, Oracle, as_answers, whole_units
from reluctant.oracles.explanations import GradientFace

DEVICE_SHARE = 0.1  # of a device's free memory that rows and what a module makes of them may take
DEVICE_BYTES = 2**33  # and at most: more makes nothing faster
TENSORS_PER_LAYER = 3  # of a layer's width, alive at once
PARTS_AHEAD = 8  # parts asked together, one after the other: the answers are read once
GRADIENT_BYTES = 2**27  # of the gradients that are made together
SHRINK_FACTOR = 8  # a batch that does not fit is asked again in so many parts


class TorchOracle(Oracle):
    """Asks a torch module on the device where it lives.

    Arguments:
        module: the model; one in training mode is copied and put into evaluation mode.
        shape: shape of one input row; None takes it from the module's first linear layer.
        precision: "float64" evaluates a copy converted to double.
        resident: keep rows and large arrays beside the module; None does so on every device but the processor.
        gradients: answer gradients by autograd, too.
    """

    def __init__(
        self,
        module: Any,
        shape: tuple[int, ...] | None = None,
        precision: Literal["as-served", "float64"] = "as-served",
        resident: bool | None = None,
        gradients: bool = False,
    ) -> None:
        self._torch = require("torch", extra="torch", purpose="Asking a torch module")
        if module.training or precision == "float64":
            module = copy.deepcopy(module).eval()
        self._module = module.double() if precision == "float64" else module
        tensors = (*self._module.parameters(), *self._module.buffers())
        example = next((tensor for tensor in tensors if tensor.is_floating_point()), self._torch.zeros(()))
        self._dtype = self._torch.float64 if precision == "float64" else example.dtype
        self._device = example.device
        self._shape = shape or _shape_of_first_layer(self._torch, module)
        with self._torch.no_grad():
            zeros = self._torch.zeros((1, *self._shape), dtype=self._dtype, device=self._device)
            try:
                raw = self._to_numpy(call_target(self._module, zeros))
            except TargetUnavailable as error:
                if "shape" not in str(error.__cause__):
                    raise  # not about the rows: the module's own trouble
                got = self._shape[0] if len(self._shape) == 1 else self._shape
                raise InvalidInput.about("dim", got=got, expected=_what_it_takes(self._torch, self._module)) from error
            outputs = as_answers(raw, 1, None).shape[1]
        dtype = np.dtype(str(self._dtype).removeprefix("torch.").replace("bfloat16", "float32"))
        self._facts = Facts(
            dim=prod(self._shape),
            outputs=outputs,
            dtype=dtype,
            kind=Kind.PROBABILITIES if _ends_in_link(self._torch, self._module) else Kind.VALUES,
            name=type(self._module).__name__,
            identity=f"{_module_identity(self._torch, self._module)} {self._dtype}",
            recast=dtype != np.float64,
        )
        resident = self._device.type != "cpu" if resident is None else resident
        self._arrays = TorchArrays(self._device) if resident else HOST
        self._batch = self._rows_that_fit() if resident else super().batch_rows
        self._shrunk = False
        self._gradients = gradients

    @property
    def facts(self) -> Facts:
        """Facts read off the module."""
        return self._facts

    @property
    def arrays(self) -> Arrays:
        """Beside the module, if it lives on a device."""
        return self._arrays

    @property
    def batch_rows(self) -> int:
        """Several times as many as fit beside the module: while a part is answered the next is written out."""
        return self._batch if self._arrays is HOST else PARTS_AHEAD * self._batch

    def answer(self, rows: FloatArray) -> FloatArray:
        """Evaluate the module."""
        if self._arrays is HOST:
            batch = self._torch.tensor(rows, dtype=self._dtype, device=self._device)
            return as_answers(self._to_numpy(self._asked(batch)), len(batch), self._facts.outputs)
        return self._in_parts(len(rows), 1, lambda part: self._arrays.put(rows[part]))

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Evaluate the module at rows that are written out beside it."""
        if self._arrays is HOST:
            return super().answer_moves(moves)
        described = moves.on(self._arrays)
        return self._in_parts(len(moves), moves.unit, lambda part: described.part(part).rows(self._arrays))

    @property
    def explained(self) -> Oracle | None:
        """Autograd, if it was asked for."""
        return Autograd(self) if self._gradients else None

    def with_gradients(self, rows: FloatArray) -> Explained:
        """Values and gradients of all outputs: one pass forward and one backward an output."""
        batch = self._torch.tensor(rows, dtype=self._dtype, device=self._device, requires_grad=True)
        raw: Any = call_target(self._module, batch.reshape(-1, *self._shape))
        values = as_answers(self._to_numpy(raw), len(rows), self._facts.outputs)
        columns = raw.reshape(len(rows), -1)
        slopes = [self._slopes(columns[:, k], batch) for k in range(self._facts.outputs)]
        return Explained(values, np.stack(slopes, axis=1))

    def _slopes(self, column: Any, batch: Any) -> FloatArray:
        found = self._torch.autograd.grad(column.sum(), batch, retain_graph=True, materialize_grads=True)[0]
        return np.asarray(self._to_numpy(found))

    def _asked(self, batch: Any) -> Any:
        """What the module makes of a batch; on a device it need not be there yet."""
        with self._torch.no_grad():
            return call_target(self._module, batch.to(self._dtype).reshape(-1, *self._shape))

    def _in_parts(self, rows: int, unit: int, write: Callable[[slice], Any]) -> FloatArray:
        """Evaluate as many rows at a time as fit; fewer, once, if memory runs out all the same.

        Answers are collected beside the module and read together: a device is not kept waiting for the next part.
        """
        answers, start = self._arrays.empty((rows, self._facts.outputs)), 0
        while start < rows:
            part = slice(start, min(start + whole_units(self._batch, unit), rows))
            try:
                answers[part] = self._beside(self._asked(write(part)), part.stop - start)
                start = part.stop
            except (self._torch.OutOfMemoryError, TargetUnavailable) as error:
                self._shrink(error, part.stop - start)
        return self._arrays.get(answers)

    def _beside(self, raw: Any, rows: int) -> Any:
        """What the module returned, as (rows, m), where it is."""
        if not isinstance(raw, self._torch.Tensor):
            return self._arrays.put(as_answers(raw, rows, self._facts.outputs))
        as_answers(np.broadcast_to(0.0, raw.shape), rows, self._facts.outputs)  # the shape is all that can be wrong
        return raw.reshape(rows, -1)

    def _shrink(self, error: Exception, rows: int) -> None:
        """Fewer rows from now on, if it was memory that ran out and this is the first time; else raise."""
        cause = error.__cause__ if isinstance(error, TargetUnavailable) else error
        if not isinstance(cause, self._torch.OutOfMemoryError):
            raise error
        if self._shrunk or rows == 1:
            raise TargetUnavailable(
                f"target: out of memory on {self._device} with {rows} rows at a time, expected room for them. "
                "Free memory there, or move the module to the processor: module.cpu()."
            ) from cause
        self._batch, self._shrunk = -(-rows // SHRINK_FACTOR), True
        if self._device.type == "cuda":
            self._torch.cuda.empty_cache()

    def _rows_that_fit(self) -> int:
        """Rows of which a share of the free memory holds inputs and the values of every layer."""
        size = DEVICE_BYTES
        if self._device.type == "cuda":
            size = min(size, int(DEVICE_SHARE * self._torch.cuda.mem_get_info(self._device)[0]))
        widths = [weights.shape[0] for weights in self._module.parameters() if weights.ndim > 1]
        return max(1, size // (8 * (2 * self._facts.dim + TENSORS_PER_LAYER * max(widths, default=1))))

    def _to_numpy(self, raw: Any) -> Any:
        return raw.detach().to("cpu", self._torch.float64).numpy() if isinstance(raw, self._torch.Tensor) else raw

    def __repr__(self) -> str:
        return f"TorchOracle({self._facts.name})"


class Autograd(GradientFace):
    """Values and gradients of a torch module."""

    def answer(self, rows: FloatArray) -> FloatArray:
        """Forward and backward, so many rows at a time that memory holds their gradients."""
        size = max(1, GRADIENT_BYTES // (FLOAT_BYTES * self.facts.outputs))
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return joined([self.inner.with_gradients(part).packed for part in parts])


def _shape_of_first_layer(torch: Any, module: Any) -> tuple[int, ...]:
    layers = [layer for layer in module.modules() if next(layer.parameters(recurse=False), None) is not None]
    if layers and isinstance(layers[0], torch.nn.Linear):
        return (int(layers[0].in_features),)
    raise InvalidInput.about(
        "dim", got="None", expected="the input size, since the module does not begin with a linear layer",
        fix=words("Give it: {dim}, or {shape} for images of that shape.", dim=N, shape=(1, 28, 28)),
    )  # fmt: skip


def _what_it_takes(torch: Any, module: Any) -> str:
    try:
        return f"{_shape_of_first_layer(torch, module)[0]}, as the first layer has it"
    except InvalidInput:
        return "a shape that the module takes"


def _ends_in_link(torch: Any, module: Any) -> bool:
    leaves = [layer for layer in module.modules() if not list(layer.children())]
    return bool(leaves) and isinstance(leaves[-1], torch.nn.Softmax | torch.nn.Sigmoid)


def _module_identity(torch: Any, module: Any) -> str:
    digest = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().to("cpu", torch.float64).numpy().tobytes())
    return f"torch sha256:{digest.hexdigest()}"
