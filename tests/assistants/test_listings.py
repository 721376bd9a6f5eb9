"""The assistants take the plugin and the extension as valid, and connect by them."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from npm_packages import find_node

pytestmark = pytest.mark.assistants
PACKAGING = Path(__file__).parents[2] / "packaging"


ENV = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "ANTHROPIC_API_KEY": "any",
    "GEMINI_API_KEY": "any",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}


@pytest.fixture
def claude(home, modules):
    """Run a command of Claude Code and return what it says."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    program = modules / "@anthropic-ai" / f"claude-code-{sys.platform}-{machine}" / "claude"
    return lambda *words: _run(home, modules, program, *words)


@pytest.fixture
def gemini(home, modules):
    """Run a command of Gemini CLI and return what it says."""
    program = modules / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return lambda *words: _run(home, modules, find_node(modules), program, *words)


def _run(home, modules, *command):
    places = (Path(sys.executable).parent, find_node(modules).parent, os.defpath)
    done = subprocess.run(
        command,
        env={"HOME": str(home), "PATH": ":".join(map(str, places))} | ENV,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("folder", [PACKAGING, PACKAGING / "claude-code"], ids=lambda f: f.name)
def test_claude_code_takes_the_marketplace_and_its_plugin_as_valid(claude, folder):
    assert "Validation passed" in claude("plugin", "validate", str(folder))


def test_claude_code_connects_once_it_has_the_plugin(claude):
    claude("plugin", "marketplace", "add", str(PACKAGING))
    claude("plugin", "install", "mcp-notebook@mcp-notebook")
    listed = claude("mcp", "list")
    assert "plugin:mcp-notebook:notebook: mcp-notebook stdio" in listed
    assert "Connected" in listed


def test_gemini_cli_connects_once_it_has_the_extension(gemini):
    extension = str(PACKAGING / "gemini-cli")
    assert "successfully validated" in gemini("extensions", "validate", extension)
    gemini("extensions", "install", extension, "--consent")
    listed = gemini("mcp", "list")
    assert "notebook (from mcp-notebook): mcp-notebook stdio" in listed
    assert "Connected" in listed
