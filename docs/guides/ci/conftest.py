"""``pytest --mcp-notebook`` checks each notebook that has a lock."""

import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--mcp-notebook", action="store_true", help="check notebooks with a lock")


def pytest_collect_file(file_path, parent):
    is_lock = file_path.name.endswith(".tools.lock")
    if is_lock and parent.config.getoption("--mcp-notebook"):
        return LockFile.from_parent(parent, path=file_path)
    return None


class LockFile(pytest.File):
    def collect(self):
        yield NotebookCheck.from_parent(self, name="mcp-notebook check")


class NotebookCheck(pytest.Item):
    def runtest(self):
        notebook = self.path.with_name(self.path.name.replace(".tools.lock", ".ipynb"))
        done = subprocess.run(["mcp-notebook", "check", notebook], capture_output=True, text=True)
        if done.returncode:
            pytest.fail(done.stdout + done.stderr, pytrace=False)
