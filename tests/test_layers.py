"""Who may import whom, and where things are: the contracts and the contributors' map."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_import_goes_in_the_direction_that_the_contracts_allow(tmp_path):
    command = [Path(sys.executable).with_name("lint-imports"), "--cache-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_room_without_a_layer_fails():
    layered = [contract for contract in CONTRACTS if contract["type"] == "layers"]
    containers = {name for contract in layered for name in contract.get("containers", ())}
    assert containers == {"mcp_notebook", "mcp_notebook.kernel", "mcp_notebook.bridge"}
    assert all(contract["exhaustive"] for contract in layered if "containers" in contract)


def test_the_contributors_map_shows_the_rooms_that_exist():
    package = ROOT / "mcp_notebook"
    rooms = {path.parent for path in package.rglob("__init__.py")} - {package}
    named = re.findall(r"^ +(\w+)/ ", CONTRIBUTING, re.MULTILINE)
    assert sorted(named) == sorted(room.name for room in rooms)
