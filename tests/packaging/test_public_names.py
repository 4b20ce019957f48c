"""The public face: every name is there, has one home, and the version is the one that was installed."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reluctant


def type_checking_imports() -> dict[str, str]:
    """Names that a type checker sees, and the modules it finds them in."""
    tree = ast.parse(Path(reluctant.__file__).read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [statement for block in blocks for statement in block.body]
    return {alias.name: statement.module for statement in imports for alias in statement.names}


def test_every_public_name_is_there():
    assert [name for name in reluctant.__all__ if getattr(reluctant, name, None) is None] == []


def test_names_and_homes_agree():
    assert set(reluctant._HOMES) | {"__version__"} == set(reluctant.__all__)
    assert type_checking_imports() == {name: f"reluctant.{home}" for name, home in reluctant._HOMES.items()}


def test_a_home_lists_what_lives_there():
    for name, place in reluctant._HOMES.items():
        home = importlib.import_module(f"reluctant.{place}")
        assert name in home.__all__, name
        assert getattr(reluctant, name) is (home if place == name else getattr(home, name)), name


VERB_PACKAGES = ["audit", "report"]
IMPORT_ORDERS = [
    "rl.{name}; import reluctant.{name}",
    "import reluctant.{name}; rl.{name}",
    "from reluctant import {name}; import reluctant.{name} as package",
    "import reluctant.{name} as package; from reluctant import {name}",
    "from reluctant.{name} import {name} as verb; import reluctant.{name}",
]


VERB_AND_PACKAGE = """
import inspect
import reluctant as rl
{order}
import reluctant.{name} as package
assert rl.{name} is package and inspect.ismodule(package)
assert inspect.signature(rl.{name}) == inspect.signature(package.{name})
try:
    rl.{name}()
except TypeError as error:
    print(error)
"""


FORGET_IT = """
import sys
for name in ("reluctant", "reluctant.audit", "reluctant.report"):  # and not their modules, which take long to import
    sys.modules.pop(name, None)
"""


def test_a_verb_and_its_package_share_a_name_in_any_order_of_imports(patience):
    """All orders in one process, the packages as if they had never been imported before each."""
    code = "".join(
        FORGET_IT + "".join(VERB_AND_PACKAGE.format(name=name, order=order.format(name=name)) for name in VERB_PACKAGES)
        for order in IMPORT_ORDERS
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=patience)
    for name in VERB_PACKAGES:
        said = ended.stdout.count(f"{name}() missing 1 required positional argument")
        assert said == len(IMPORT_ORDERS)


def test_names_are_sorted_and_unique():
    assert reluctant.__all__ == sorted(set(reluctant.__all__))
    assert dir(reluctant) == reluctant.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'reluctant' has no attribute 'steal'"):
        _ = reluctant.steal


def test_star_import_gives_the_public_names():
    names: dict[str, object] = {}
    exec("from reluctant import *", names)
    assert set(reluctant.__all__) <= set(names)


def test_every_public_name_has_its_place_in_the_reference():
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
    documented = re.findall(r"^::: reluctant\.(\S+)", page, re.MULTILINE)
    verbs = {f"{name}.{name}": name for name in VERB_PACKAGES}
    names = [verbs.get(name, name) for name in documented]
    assert len(set(names)) == len(names)
    assert {*names, "ReluctantError", "__version__"} == {*reluctant.__all__, "errors"}


def test_every_error_is_in_the_tree_at_the_top_of_its_module():
    import reluctant.errors

    assert all(name in reluctant.errors.__doc__ for name in reluctant.errors.__all__)


def test_the_version_is_the_installed_one():
    assert reluctant.__version__ == importlib.metadata.version("reluctant")


def test_the_package_is_typed():
    assert (Path(reluctant.__file__).parent / "py.typed").is_file()


def test_every_package_names_what_it_gives():
    top = Path(reluctant.__file__).parent
    for path in top.rglob("__init__.py"):
        package = importlib.import_module(".".join(["reluctant", *path.parent.relative_to(top).parts]))
        assert isinstance(package.__all__, list | tuple), package.__name__
