"""Fail if a lower bound in pyproject.toml is not what is installed: nobody would have run it.

For an environment that was made with ``uv pip install --resolution lowest-direct``.
"""

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
wrong = []
tested = ("demo", "gallery", "test", "test-libraries")
for line in [*project["dependencies"], *(line for name in tested for line in extras[name])]:
    wanted = Requirement(line)
    lower = [bound.version for bound in wanted.specifier if bound.operator == ">="]
    if not lower or (wanted.marker and not wanted.marker.evaluate()):
        continue
    installed = Version(version(wanted.name))
    if installed.release[: len(Version(lower[0]).release)] != Version(lower[0]).release:
        wrong.append(f"{wanted.name}>={lower[0]}: the lowest that can be installed is {installed}")
sys.exit("\n".join(wrong) or 0)
