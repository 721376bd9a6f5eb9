"""Who may import whom, and where things are: the contracts and the contributors' drawing."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

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
    assert containers == {
        "mcp_notebook",
        "mcp_notebook.kernel",
        "mcp_notebook.bridge",
        "mcp_notebook.bridge.server",
    }
    assert all(contract["exhaustive"] for contract in layered if "containers" in contract)


def test_the_contributors_drawing_names_the_rooms_that_exist():
    package = ROOT / "mcp_notebook"
    rooms = {path.parent for path in package.rglob("__init__.py")} - {package}
    sides = {package, package / "kernel", package / "bridge"}  # their rooms have boxes of their own
    outer = {room for room in rooms if room.parent in sides}
    section = CONTRIBUTING.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    (drawing,) = re.findall(r"\]\((docs/\S+\.svg)\)", section)
    texts = "\n".join(ET.fromstring((ROOT / drawing).read_text(encoding="utf-8")).itertext())
    drawn = re.findall(r"\b(\w+)/", texts)
    assert sorted(drawn) == sorted(room.name for room in outer)
