"""The assistants take the plugin and the extension as valid."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from npm_packages import find_node

pytestmark = pytest.mark.assistants
PACKAGING = Path(__file__).parents[2] / "packaging"


def _run(home, modules, *command):
    env = {"HOME": str(home), "PATH": f"{find_node(modules).parent}:{os.defpath}"}
    return subprocess.run(
        command,
        env=env,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("folder", [PACKAGING, PACKAGING / "claude-code"], ids=lambda f: f.name)
def test_claude_code_takes_the_marketplace_and_its_plugin(home, modules, folder):
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    claude = modules / "@anthropic-ai" / f"claude-code-{sys.platform}-{machine}" / "claude"
    done = _run(home, modules, str(claude), "plugin", "validate", str(folder))
    assert (done.returncode, "Validation passed" in done.stdout) == (0, True), done.stdout


def test_gemini_cli_takes_the_extension(home, modules):
    gemini = next((modules / "@google" / "gemini-cli").glob("bundle/gemini.js"))
    words = ("extensions", "validate", str(PACKAGING / "gemini-cli"))
    done = _run(home, modules, str(find_node(modules)), str(gemini), *words)
    assert (done.returncode, "successfully validated" in done.stdout) == (0, True), done.stdout
