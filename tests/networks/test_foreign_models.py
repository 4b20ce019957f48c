"""Models trained or built by scikit-learn and torch, read into a network that computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

from reluctant import ReLUNetwork


@pytest.mark.parametrize("hidden", [(6,), (6, 5), (6, 5, 4)], ids=str)
def test_scikit_learn_weights(hidden, seed):
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    model = MLPRegressor(hidden_layer_sizes=hidden, max_iter=5, random_state=seed)
    with pytest.warns(UserWarning, match="converged yet"):
        model.fit(x, y)
    network = ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)
    rows = 10 * rng.standard_normal((40, 4))
    np.testing.assert_allclose(network(rows), model.predict(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's exporter warns of its own past and future
@pytest.mark.parametrize("dynamo", sweep([False, True], fast=[False]), ids=["torchscript", "dynamo"])
def test_torch_export(dynamo, tmp_path, seed):
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers = [nn.Linear(16, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)]
    module = nn.Sequential(nn.Flatten(), *layers).eval()
    path = tmp_path / "model.onnx"
    batch = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)} if dynamo else {"dynamic_axes": {"x": {0: "batch"}}}
    example = torch.zeros(2, 1, 4, 4)
    torch.onnx.export(module, (example,), str(path), input_names=["x"], dynamo=dynamo, verbose=False, **batch)
    network = ReLUNetwork.load(path)
    assert network.widths == (16, 8, 5, 3)
    rows = np.random.default_rng(seed).standard_normal((20, 16))
    with torch.no_grad():
        expected = module.double()(torch.tensor(rows).reshape(-1, 1, 4, 4)).numpy()
    np.testing.assert_allclose(network(rows), expected, rtol=1e-13, atol=1e-13)
