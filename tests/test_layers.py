"""Who may import whom: the contracts in pyproject.toml, as a test."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]


def test_every_import_goes_in_the_direction_that_the_contracts_allow(tmp_path):
    command = [Path(sys.executable).with_name("lint-imports"), "--cache-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _layers():
    for contract in CONTRACTS:
        if contract["type"] == "layers":
            (container,) = contract["containers"]
            names = {name.strip(" ()") for layer in contract["layers"] for name in _names(layer)}
            yield pytest.param(container, names, id=container)


def _names(layer):
    return layer.replace(":", "|").split("|")


@pytest.mark.parametrize(("package", "layers"), list(_layers()))
def test_every_module_has_a_layer(package, layers):
    folder = ROOT / package.replace(".", "/")
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules - layers == set(), "name them in the contract in pyproject.toml"
