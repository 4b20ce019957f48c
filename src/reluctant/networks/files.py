"""Networks on disk: `.npz` of our own, `.onnx` for everybody; chosen by suffix."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

import numpy as np

from reluctant.errors import InvalidInput, UnsupportedModel
from reluctant.networks.network import ReLUNetwork

__all__ = ["load_network", "save_network"]

NPZ_FORMAT = 1
SUFFIXES = {".npz", ".onnx"}


def save_network(network: ReLUNetwork, path: Path, dtype: Literal["float64", "float32"]) -> None:
    """Write the network as `.npz` or `.onnx`."""
    if path.suffix in SUFFIXES and not path.parent.is_dir():
        raise InvalidInput.about("path", got=f"'{path}'", expected="a file in an existing folder")
    if path.suffix == ".npz":
        _save_npz(network, path, dtype)
    elif path.suffix == ".onnx":
        from reluctant.networks.onnx_write import write_onnx

        write_onnx(network, path, dtype)
    else:
        raise _wrong_suffix(path)


def load_network(path: Path) -> ReLUNetwork:
    """Read a network from `.npz` or `.onnx`."""
    if path.suffix not in SUFFIXES:
        raise _wrong_suffix(path)
    if not path.is_file():
        raise InvalidInput.about("path", got=f"'{path}'", expected="an existing file")
    if path.suffix == ".npz":
        return _load_npz(path)
    from reluctant.networks.onnx_read import read_onnx

    return read_onnx(path)


def _wrong_suffix(path: Path) -> InvalidInput:
    return InvalidInput.about("path", got=f"'{path.name}'", expected="a name ending in .npz or .onnx")


def _save_npz(network: ReLUNetwork, path: Path, dtype: str) -> None:
    arrays = {f"weight_{k}": w.astype(dtype) for k, w in enumerate(network.weights)}
    arrays |= {f"bias_{k}": b.astype(dtype) for k, b in enumerate(network.biases)}
    if network.skip is not None:
        arrays["skip"] = network.skip.astype(dtype)
    header = {"format": np.array(NPZ_FORMAT), "link": np.array(network.link)}
    with path.open("wb") as file:
        np.savez(file, **header, **arrays)  # type: ignore[arg-type]


def _load_npz(path: Path) -> ReLUNetwork:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = dict(data)
        found = int(arrays["format"])
        layers = sum(name.startswith("weight_") for name in arrays)
        weights = [arrays[f"weight_{k}"] for k in range(layers)]
        biases = [arrays[f"bias_{k}"] for k in range(layers)]
        link = str(arrays["link"])
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnsupportedModel.about("path", got=f"'{path}'", expected="an .npz written by ReLUNetwork.save") from error
    if found != NPZ_FORMAT:
        raise UnsupportedModel.about(
            "path",
            got=f"'{path}' of format {found}",
            expected=f"format {NPZ_FORMAT}",
            fix="Update reluctant.",
        )
    return ReLUNetwork(weights, biases, arrays.get("skip"), link)  # type: ignore[arg-type]
