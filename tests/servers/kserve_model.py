"""Runs in KServe's own environment: serves the network of an .npz file, in plain numpy."""

from __future__ import annotations

import sys

import numpy as np
from kserve import InferRequest, InferResponse, Model, ModelServer
from kserve.utils.utils import get_predict_response


class Network(Model):
    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        with np.load(path) as arrays:
            self.arrays = dict(arrays)
        self.ready = True

    def predict(self, payload: InferRequest, headers=None, response_headers=None) -> InferResponse:
        arrays = self.arrays
        hidden = np.maximum(payload.inputs[0].as_numpy() @ arrays["weight_0"].T + arrays["bias_0"], 0)
        return get_predict_response(payload, hidden @ arrays["weight_1"].T + arrays["bias_1"], self.name)


if __name__ == "__main__":
    model, path, port = sys.argv[1:]
    ModelServer(http_port=int(port), enable_grpc=False, workers=1).start([Network(model, path)])
