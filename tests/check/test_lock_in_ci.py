"""The files of the guide that are copied into a project, with the commands that they run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import notebook_files
import pytest
import yaml
from documents import ROOT
from live import kernel_env
from planted_faults import ADD, LOAD, run_check

FILES = ROOT / "docs/guides/ci"
pytestmark = pytest.mark.slow


@pytest.fixture
def project(home):
    """A folder with a notebook that is locked."""
    path = notebook_files.write_notebook(home / "sales.ipynb", LOAD, ADD.strip())
    assert run_check(home, path, "--lock").returncode == 0
    return home


def run(project, words):
    """Run a command as in the project's folder, with mcp-notebook on the path."""
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = kernel_env(project) | {"PATH": scripts}
    return subprocess.run(
        words, cwd=project, env=env, capture_output=True, text=True, check=False, timeout=110
    )


def break_tool(project):
    path = project / "sales.ipynb"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("b: int = 2", "b: int"), encoding="utf-8")


def test_pytest_checks_the_notebooks_that_have_a_lock(project):
    shutil.copy(FILES / "conftest.py", project)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert "no tests ran" in run(project, words).stdout
    assert "1 passed" in run(project, [*words, "--mcp-notebook"]).stdout
    break_tool(project)
    done = run(project, [*words, "--mcp-notebook"])
    assert done.returncode == 1
    assert "add\t`b` became required\tbreaking" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_commands_of_the_hook_and_of_the_workflow_fail_after_a_breaking_change(project):
    (hook,) = yaml.safe_load((FILES / "pre-commit.yaml").read_text())["repos"][0]["hooks"]
    assert hook["language"] == "system"  # what it needs is installed already
    names = ("sales.ipynb", "sales.tools.lock", "lib/tables.py")
    assert all(re.search(hook["files"], name) for name in names)
    workflow = yaml.safe_load((FILES / "github.yaml").read_text())
    *_, step = workflow["jobs"]["check"]["steps"]
    commands = [shlex.split(each) for each in (hook["entry"], step["run"])]
    assert [run(project, words).returncode for words in commands] == [0, 0]
    break_tool(project)
    assert [run(project, words).returncode for words in commands] == [1, 1]
