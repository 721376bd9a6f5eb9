"""Notebooks that a client has opened and run: once, from the file, in the user's own session."""

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx2
import nbformat
import pytest
from clients import over_http, text_of
from jupyter_servers import TOKEN, jupyter_server
from listing import list_tools
from live import TIMEOUT

LOAD = "%load_ext mcp_notebook"
TOOL = '%%mcp_tool\ndef double(n: int) -> int:\n    "Double."\n    return 2 * n'
COUNT = "import os, pathlib\nwith open('runs.txt', 'a') as file:\n    print(os.getpid(), file=file)"


@pytest.fixture(scope="module")
def server(module_home):
    """A server without an open notebook."""
    (module_home / "2024").mkdir()
    with jupyter_server(module_home) as server:
        yield server


def write(server, path, *cells, kernel=None):
    """Write a notebook, and return its path."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    if kernel:
        notebook.metadata.kernelspec = {"name": kernel, "display_name": kernel}
    nbformat.write(notebook, server.home / path)
    return path


def send_order(server, path, *, run=True):
    """Have a notebook opened, and return the events of the answer."""
    answer = server.http.post("mcp-notebook/api/notebooks", json={"path": path, "run": run})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/event-stream"
    lines = [line for line in answer.text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def find_sessions(server, path):
    sessions = server.http.get("api/sessions").raise_for_status().json()
    return [session for session in sessions if session["path"] == path]


@pytest.mark.anyio
async def test_a_notebook_that_nobody_has_open_is_run_and_offers_its_tools(server):
    path = write(server, "2024/rain.ipynb", LOAD, "", TOOL)
    assert send_order(server, path) == [
        {"step": "Starting a kernel for 2024/rain.ipynb ..."},
        {"step": "Code cell 1 of 2 of 2024/rain.ipynb ..."},
        {"step": "Code cell 2 of 2 of 2024/rain.ipynb ..."},
        {"done": True},
    ]
    async with over_http(f"{server.url}mcp/2024/rain.ipynb", "auto", token=TOKEN) as client:
        assert {tool.name for tool in await list_tools(client)} == {"double"}
        assert text_of(await client.call_tool("double", {"n": 4})) == "8"
    assert send_order(server, path) == [{"done": True}], "it is open"
    (session,) = find_sessions(server, path)
    assert session["name"] == "rain.ipynb"


def test_two_clients_at_once_start_one_kernel_and_run_the_cells_once(server):
    path = write(server, "twice.ipynb", COUNT, LOAD, TOOL)
    with ThreadPoolExecutor() as threads:
        ends = list(threads.map(lambda _: send_order(server, path)[-1], range(3)))
    assert ends == [{"done": True}] * 3
    assert len((server.home / "runs.txt").read_text().splitlines()) == 1
    assert len(find_sessions(server, path)) == 1


def test_without_the_order_to_run_it_a_kernel_is_opened_and_no_cell_runs(server):
    path = write(server, "opened.ipynb", "open('ran', 'w').close()", LOAD)
    assert send_order(server, path, run=False)[-1] == {"done": True}
    assert len(find_sessions(server, path)) == 1
    assert not (server.home / "ran").exists()
    assert send_order(server, path)[-1] == {"done": True}, "its kernel is fresh"
    assert (server.home / "ran").exists()


@pytest.mark.slow
def test_cells_with_the_tag_skip_execution_are_not_run(server):
    cell = nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["skip-execution"]})
    notebook = nbformat.v4.new_notebook(
        cells=[cell, nbformat.v4.new_markdown_cell("Rain"), nbformat.v4.new_code_cell(LOAD)]
    )
    nbformat.write(notebook, server.home / "skips.ipynb")
    assert send_order(server, "skips.ipynb")[1:] == [
        {"step": "Code cell 1 of 1 of skips.ipynb ..."},
        {"done": True},
    ]


@pytest.mark.slow
def test_a_cell_that_fails_is_named_and_the_next_attempt_begins_anew(server):
    path = write(server, "fails.ipynb", LOAD, "x = 1 / 0")
    *_, failure = send_order(server, path)
    assert failure == {
        "error": "Code cell 2 of 2 of fails.ipynb failed: ZeroDivisionError: division by zero. "
        "Fix the cell."
    }
    write(server, path, LOAD, TOOL)
    assert send_order(server, path)[-1] == {"done": True}


@pytest.mark.slow
def test_a_kernel_that_dies_while_its_notebook_runs_is_told(server):
    kill = f"import os, signal\nos.kill(os.getpid(), {int(signal.SIGKILL)})"
    path = write(server, "dies.ipynb", kill)
    assert (
        "Code cell 1 of 1 of dies.ipynb: the kernel ended" in send_order(server, path)[-1]["error"]
    )


def test_a_user_who_computes_there_keeps_what_is_computed(server):
    path = write(server, "used.ipynb", "x = 2", LOAD)
    kernel_id = server.start_kernel("x = 1", path=path)
    assert "Nothing was run" in send_order(server, path)[-1]["error"]
    (output,) = server.run(kernel_id, "print(x)")
    assert output.stdout == "1\n"


@pytest.mark.parametrize(
    ("path", "cells", "kernel", "reason"),
    [
        ("none.ipynb", None, None, "'none.ipynb' cannot be opened.*does not exist"),
        ("../secret.ipynb", None, None, "cannot be opened"),
        pytest.param(
            *("plain.ipynb", ["1 + 1"], None, "offers no tools.*load_ext"), marks=pytest.mark.slow
        ),
        ("julia.ipynb", ["1 + 1"], "julia-1.11", "The kernel 'julia-1.11' of julia.ipynb did not"),
    ],
)
def test_what_cannot_be_run_is_told_with_the_next_step(server, path, cells, kernel, reason):
    if cells is not None:
        write(server, path, *cells, kernel=kernel)
    error = send_order(server, path)[-1]["error"]
    assert re.search(reason, error), error


def test_an_order_that_is_none_is_refused(server):
    for body in ({}, {"path": 1}, {"path": "a.ipynb", "cell": 1}, []):
        answer = server.http.post("mcp-notebook/api/notebooks", json=body)
        assert answer.status_code == 400
        assert "Name a notebook" in answer.json()["message"]


def test_without_the_token_nothing_is_opened(server):
    path = write(server, "guarded.ipynb", LOAD)
    answer = httpx2.post(
        f"{server.url}mcp-notebook/api/notebooks",
        json={"path": path, "run": True},
        headers={"Authorization": "token wrong"},
        trust_env=False,
        timeout=TIMEOUT,
    )
    assert answer.status_code == 401
    assert not find_sessions(server, path)
