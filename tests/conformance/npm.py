"""The npm packages that the conformance tests run."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from npm_packages import LIMIT, CannotInstall, bring_in, find_node

__all__ = ["LIMIT", "Programs", "programs"]


@dataclass(frozen=True)
class Programs:
    """Commands, to be followed by arguments."""

    conformance: list[str]
    inspector: list[str]


def programs() -> Programs:
    """Return the programs, from the packages of the lock file."""
    try:
        modules = bring_in(Path(__file__).parent)
        node = str(find_node(modules))
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    launcher = modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher"
    return Programs(
        conformance=[node, str(suite)],
        inspector=[node, str(launcher / "build" / "index.js"), "--cli"],
    )
