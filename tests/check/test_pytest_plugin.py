"""``pytest --mcp-notebook``: the tools of notebooks as tests."""

import re
import subprocess
import sys

import pytest
from live import kernel_env
from planted_faults import ADD, FAULTS, write_notebook


def _run(home, *words):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *words],
        env=kernel_env(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_each_tool_of_a_notebook_and_each_example_is_a_test(home):
    (home / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    line = "--read-only --example b=3 --example b=0"
    some = ADD.replace("a: int,", "a: int = 1,").replace("a + b", "a // b")
    some = some.replace("--read-only", line)
    uncalled = ADD.replace("def add", "def power").replace("Add two", "Raise one to another of")
    write_notebook(home, some, FAULTS["writes a file"][-1], uncalled)
    done = _run(home, "--mcp-notebook", "tools.ipynb")
    ends = re.findall(r"^tools.ipynb::(.+?) (PASSED|FAILED|SKIPPED)", done.stdout, re.MULTILINE)
    assert ends == [
        ("notebook", "PASSED"),
        ("add", "PASSED"),
        ("add(b=3)", "PASSED"),
        ("add(b=0)", "FAILED"),
        ("export_sales", "FAILED"),
        ("export_sales()", "PASSED"),
        ("power", "PASSED"),
        ("power()", "SKIPPED"),
    ]
    assert 'The example {"b": 0} is answered with an error: ZeroDivisionError' in done.stdout
    assert "power() SKIPPED (Not called: no example; write one" in done.stdout
    assert "cell 3, line 2: It is declared read-only, but it writes the file" in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
def test_a_notebook_that_cannot_be_run_is_an_error(home):
    (home / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write_notebook(home)
    done = _run(home, "--mcp-notebook", "tools.ipynb")
    assert "tools.ipynb offers no tools" in done.stdout
    assert done.returncode == 2


def test_notebooks_are_left_alone_unless_they_are_asked_for(home):
    (home / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write_notebook(home, ADD)
    assert "no tests ran" in _run(home).stdout


def test_the_plugin_imports_nothing_heavy():
    code = "import sys, mcp_notebook.check.pytest_plugin; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"mcp", "pydantic", "jupyter_client", "IPython", "msgspec", "anyio"}
