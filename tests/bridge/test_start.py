import json
import subprocess
import sys

import ipykernel
import IPython
import pytest
from bridges import INITIALIZE, PING, PONG, bridge
from forked_command import list_words
from live import TIMEOUT, kernel_env

from mcp_notebook.text.missing_tools import READ_RESOURCE

NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": f"cell{number}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": source}
        for number, source in enumerate(
            ["%load_ext mcp_notebook", "%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1"]
        )
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}  # fmt: skip
NOTED = """
import sys

def note(event, arguments):
    if event == "subprocess.Popen" and "headless_launcher" in str(arguments):
        large = {"IPython.core", "nbclient", "nbformat", "pydantic"}
        print("The kernel starts after", sorted(large & sys.modules.keys()), file=sys.stderr)

sys.addaudithook(note)
from mcp_notebook.__main__ import main
main()
"""
FROZEN = """
import gc
import anyio
from mcp_notebook.bridge.start import start_stdio
from mcp_notebook.settings.settings import Settings
anyio.run(start_stdio, Settings.from_environment())
print(gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))
"""
LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}


def test_a_bridge_without_notebooks_lists_without_what_only_others_need(home):
    command = [sys.executable, "-X", "importtime", "-m", "mcp_notebook"]
    with bridge(home, "stdio", command=command, stdin=-1) as running:
        for message in (INITIALIZE, LIST):
            running.send(json.dumps(message).encode())
            assert "result" in running.message()
        running.process.stdin.close()
        assert running.wait() == 0
    loaded = {line.rpartition("|")[2].strip() for line in running.said.splitlines()}
    assert "msgspec" in loaded
    assert loaded.isdisjoint(
        {"httpx2", "jsonschema", "multiprocessing", "psutil", "pydantic_core", "tempfile"}
        | {"IPython", "jupyter_client", "typer", "uvicorn"}
    )


@pytest.mark.slow
@pytest.mark.skipif(
    IPython.version_info[:2] < (9, 16) or ipykernel.version_info[0] < 7,
    reason="older ones are imported whole",
)
def test_a_notebooks_kernel_starts_before_the_bridge_loads_its_libraries(home):
    path = home / "one.ipynb"
    path.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    command = [sys.executable, "-c", NOTED]
    with bridge(home, "stdio", str(path), command=command, stdin=-1) as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.message()
        running.send(json.dumps(LIST).encode())
        tools = running.message()["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["one", READ_RESOURCE]
        running.process.stdin.close()
        assert running.wait() == 0
    assert [line for line in running.said.splitlines() if line.startswith("The kernel starts")] == [
        "The kernel starts after []"
    ]


def test_no_kernel_starts_for_a_notebook_that_has_no_lock(home):
    path = home / "one.ipynb"
    path.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    command = [sys.executable, "-c", NOTED]
    for name in ("stdio", "serve"):
        with bridge(home, name, "--locked", str(path), command=command, stdin=-1) as running:
            assert running.wait() == 1
        assert "one.ipynb has no lock" in running.said
        assert "tarting the kernel" not in running.said
        assert "The kernel starts" not in running.said


def test_what_is_wrong_with_a_notebook_is_told_as_always(home):
    with bridge(home, "stdio", str(home / "gone.ipynb"), stdin=-1) as running:
        assert running.wait() == 1
    assert f"The file {home / 'gone.ipynb'} does not exist." in running.said


@pytest.mark.parametrize("method", ["tools/list", "skills/list"])
def test_a_client_is_told_why_its_notebook_cannot_be_served(home, method):
    with bridge(home, "stdio", str(home / "gone.ipynb"), stdin=-1) as running:
        running.send(json.dumps(INITIALIZE).encode())
        running.send(json.dumps(LIST | {"method": method}).encode())
        assert running.message()["result"]
        told = running.message()["error"]["message"]
        assert told.startswith(f"The file {home / 'gone.ipynb'} does not exist.")
        assert running.wait() == 1


def test_requests_are_read_from_a_file_and_answered_into_one(home):
    given, taken = home / "requests", home / "answers"
    lines = [INITIALIZE, PING]
    given.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with given.open() as stdin, taken.open("w") as stdout:
        subprocess.run(
            list_words("stdio"),
            env=kernel_env(home),
            stdin=stdin,
            stdout=stdout,
            timeout=TIMEOUT,
            check=True,
        )
    answers = [json.loads(line) for line in taken.read_text("utf-8").splitlines()]
    assert PONG in answers
    (welcome,) = (answer for answer in answers if answer["id"] == INITIALIZE["id"])
    assert welcome["result"]["serverInfo"]


@pytest.mark.slow
def test_no_garbage_is_looked_for_in_what_a_bridge_has_imported(home):
    done = subprocess.run(
        [sys.executable, "-c", FROZEN],
        env=kernel_env(home),
        input="",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.stdout == "True True\n", done.stderr
