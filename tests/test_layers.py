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


def test_a_module_without_a_layer_fails():
    layered = [contract for contract in CONTRACTS if contract["type"] == "layers"]
    assert all(contract["exhaustive"] for contract in layered)
    containers = {name for contract in layered for name in contract["containers"]}
    assert containers == {"mcp_notebook", "mcp_notebook.kernel", "mcp_notebook.bridge"}


def test_the_contributors_map_shows_the_modules_that_exist():
    package = ROOT / "mcp_notebook"
    modules = {str(path.relative_to(ROOT)) for path in package.rglob("*.py")}
    inner_packages = {f"mcp_notebook/{name}/__init__.py" for name in ("kernel", "bridge")}
    assert _mapped() == modules - inner_packages


def test_the_contributors_map_shows_the_folders_that_exist():
    folders = re.findall(r"^(\w+)/ ", CONTRIBUTING, re.MULTILINE)
    assert folders == ["tests", "notebooks", "docs", "binder"]
    assert all((ROOT / folder).is_dir() for folder in folders)


def _mapped():
    """Return the modules in the map, as paths."""
    folder = ""
    found = set()
    for line in CONTRIBUTING.splitlines():
        if match := re.match(r"(?:  )?(\w+)/(?:\s|$)", line):
            folder = match[1] if match[1] == "mcp_notebook" else f"mcp_notebook/{match[1]}"
        elif match := re.match(r"\s+(\w+\.py)\s", line):
            found.add(f"{folder}/{match[1]}")
    return found
