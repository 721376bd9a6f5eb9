"""What repo2docker reads to build the Binder image, against pyproject.toml and the tree."""

import os
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_binder_installs_this_checkout_with_an_extra_that_exists():
    (line,) = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", line)
    assert extras is not None
    assert extras[1].split(",") == ["dask", "gallery"]  # with all that any of the notebooks imports
    assert "gallery" in PROJECT["optional-dependencies"]


def test_binders_python_is_one_that_the_package_supports():
    runtime = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip()
    version = runtime.removeprefix("python-")
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_last_step_of_the_build_can_be_executed():
    script = BINDER / "postBuild"
    assert os.access(script, os.X_OK)
    commands = re.findall(r"^([\w-]+)", script.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"python", *PROJECT["scripts"]} >= set(commands) - {"set"}


def test_the_readme_has_a_badge_if_the_repository_has_an_address():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    address = re.search(r"https://mybinder\.org/v2/gh/([^)\s]+)/HEAD\?labpath=([^)\s]+)\)", readme)
    assert PROJECT.get("urls", {}).get("Repository") == (
        None if address is None else f"https://github.com/{address[1]}"
    )
    # It shows what an assistant does to those who have none there.
    assert address is None or unquote(address[2]) == "notebooks/first_look.ipynb"
