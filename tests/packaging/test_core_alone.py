"""The core on numpy and scipy alone; what needs more says which pip line brings it."""

from __future__ import annotations

import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import reluctant
from reluctant.bundled import digits_model

CORE_LIBRARIES = ("numpy", "scipy")
PATIENCE_SECONDS = 180
NEED_EXTRAS = ("reluctant.cli", "reluctant.testing.contract", "reluctant.testing.strategies")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but numpy, scipy and this package to import."""
    folder = tmp_path_factory.mktemp("bare")
    for library in CORE_LIBRARIES:
        home = Path(importlib.util.find_spec(library).origin).parent
        for part in (home, home.with_name(f"{library}.libs")):
            if part.exists():
                (folder / part.name).symlink_to(part)
    (folder / "reluctant").symlink_to(Path(reluctant.__file__).parent)
    return folder


def run_bare(folder: Path, code: str) -> str:
    """Run code that finds the standard library and this folder alone."""
    lines = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{code}"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", lines], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def core_modules() -> list[str]:
    found = pkgutil.walk_packages(reluctant.__path__, "reluctant.", onerror=lambda name: None)
    return [module.name for module in found if not module.name.startswith(NEED_EXTRAS)]


def test_every_core_module_can_be_imported(bare):
    modules = core_modules()
    assert len(modules) > 30
    code = f"import importlib, json\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = set(json.loads(run_bare(bare, code)))
    assert not loaded & {"onnx", "torch", "sklearn", "xxhash", "typer", "rich", "jinja2", "matplotlib", "pytest"}


def test_every_public_name_is_there_and_a_network_is_asked_checked_and_verified(bare):
    code = """
import reluctant as rl
print(len([getattr(rl, name) for name in rl.__all__]))
from reluctant.testing import planted
network = planted((6, 8, 1))
oracle = rl.open_oracle(lambda x: network(x), dim=6)
assert rl.check_health(oracle).refusal is None
assert rl.verify(oracle, network.canonical()).ok
assert rl.compare(network, network).parameter_error == 0
network.save({path!r})
assert rl.equivalent(rl.ReLUNetwork.load({path!r}), network)
"""
    assert int(run_bare(bare, code.format(path=str(bare / "network.npz")))) > 15


NEEDS = {
    "reluctant.open_oracle(MODEL)": ("reluctant[onnx]", "onnx"),
    "reluctant.ReLUNetwork.load(MODEL)": ("reluctant[onnx]", "onnx"),
    "planted((4, 3, 1)).save(FOLDER + '/network.onnx')": ("reluctant[onnx]", "onnx"),
    "reluctant.open_oracle(planted((4, 3, 1)), transcript=FOLDER + '/kept')": ("xxhash", "xxhash"),
    "reluctant.open_oracle('http://localhost:1/v2/models/x')": ("reluctant[http]", "httpx"),
    "reluctant.open_oracle(planted((4, 3, 1)), engine='dask://localhost')": ("reluctant[dask]", "distributed"),
    "new_figure()": ("reluctant[report]", "matplotlib"),
    "render('base.html')": ("reluctant[report]", "jinja2"),
    "AuditRecord.from_dict({'schema': 'reluctant-audit/4'})": ("reluctant[report]", "msgspec"),
}


@pytest.fixture(scope="module")
def said(bare, tmp_path_factory):
    """What each call says, all of them in one process."""
    code = f"""
import json
import reluctant
from reluctant.errors import MissingDependency
from reluctant.audit.record import AuditRecord
from reluctant.report import render
from reluctant.report.drawings import new_figure
from reluctant.testing import planted
MODEL, FOLDER = {str(digits_model())!r}, {str(tmp_path_factory.mktemp("calls"))!r}
said = {{}}
for call in {list(NEEDS)!r}:
    try:
        eval(call)
    except MissingDependency as error:
        said[call] = error.name, str(error)
print(json.dumps(said))
"""
    return json.loads(run_bare(bare, code))


@pytest.mark.parametrize("call", NEEDS)
def test_a_missing_library_is_named_with_its_pip_line(call, said):
    wanted, library = NEEDS[call]
    name, text = said[call]
    assert name == library
    assert "pip install" in text
    assert wanted in text


def test_the_command_line_says_what_it_needs(bare):
    code = "from reluctant.cli import main\ntry: main()\nexcept SystemExit as stop: print(stop)"
    assert run_bare(bare, code).strip().endswith("pip install 'reluctant[cli]'")
