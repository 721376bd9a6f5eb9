"""Notebooks that a client has opened and run: once, from the file, in the user's own session."""

import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import nbformat
import pytest
from clients import over_http, text_of
from jupyter_servers import TOKEN, jupyter_server
from listing import list_tools
from live import TIMEOUT, until
from notebook_files import write_notebook

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
    write_notebook(server.home / path, *cells, kernel=kernel)
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
    async with over_http(
        f"{server.url}mcp-notebook/2024/rain.ipynb", "auto", token=TOKEN
    ) as client:
        assert {tool.name for tool in await list_tools(client)} == {"double"}
        assert text_of(await client.call_tool("double", {"n": 4})) == "8"
    assert send_order(server, path) == [{"done": True}], "it is open"
    (session,) = find_sessions(server, path)
    assert session["name"] == "rain.ipynb"


def test_a_python_notebook_whose_kernel_is_missing_runs_in_that_of_the_server(server):
    language = {"name": "python"}
    write_notebook(server.home / "gone.ipynb", LOAD, kernel="conda-gone", language_info=language)
    steps = send_order(server, "gone.ipynb")
    assert steps[1] == {
        "step": "The kernel 'conda-gone' is not installed here; 'python3' is used instead."
    }
    assert steps[-1] == {"done": True}


@pytest.mark.slow
def test_a_missing_kernel_is_not_replaced_by_one_for_another_language_or_by_a_guess(home):
    def add_kernel(name, language):
        folder = home / "data" / "kernels" / name
        folder.mkdir(parents=True)
        spec = {"argv": ["false"], "display_name": name, "language": language}
        (folder / "kernel.json").write_text(json.dumps(spec))

    language = {"name": "Python"}
    write_notebook(home / "gone.ipynb", LOAD, kernel="conda-gone", language_info=language)
    write_notebook(home / "lost.ipynb", LOAD, kernel="conda-gone", language_info=language)
    with jupyter_server(home, "--MultiKernelManager.default_kernel_name=ir") as server:
        add_kernel("ir", "R")
        steps = send_order(server, "gone.ipynb")
        assert "'python3' is used instead" in steps[1]["step"]
        assert steps[-1] == {"done": True}
        add_kernel("geo", "python")
        *_, failure = send_order(server, "lost.ipynb")
        assert "The kernel 'conda-gone' of lost.ipynb did not start" in failure["error"]


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


@pytest.mark.parametrize("path", ["./opened.ipynb", "x/../opened.ipynb", ".//opened.ipynb"])
def test_a_path_written_otherwise_is_that_of_the_open_notebook(server, path):
    own = write(server, "opened.ipynb", LOAD, TOOL)
    assert send_order(server, own, run=False)[-1] == {"done": True}
    (session,) = find_sessions(server, own)
    assert send_order(server, path, run=False) == [{"done": True}]
    (still,) = find_sessions(server, own)
    assert still["kernel"]["id"] == session["kernel"]["id"]


def test_a_user_who_computes_there_keeps_what_is_computed(server):
    path = write(server, "used.ipynb", "x = 2", LOAD)
    kernel_id = server.start_kernel("x = 1", path=path)
    assert "Nothing was run" in send_order(server, path)[-1]["error"]
    (output,) = server.run(kernel_id, "print(x)")
    assert output.stdout == "1\n"


# -- a user who computes in the same kernel --------------------------------------------------------

FAIL = "get_ipython().kernel.stop_on_error_timeout = 5\n1 / 0"
"""Fails, and has ipykernel drop for some seconds what comes next, however slow the machine is."""


class Gate:
    """A cell that waits until it is let through."""

    def __init__(self, server, name):
        self._began, self._fifo = server.home / f"{name}.began", server.home / f"{name}.fifo"
        os.mkfifo(self._fifo)
        self.cell = f"open({str(self._began)!r}, 'w').close()\nopen({str(self._fifo)!r}).read()"

    def wait(self):
        until(self._began.exists)

    def open(self):
        self._fifo.write_bytes(b"")


@contextmanager
def user_of(server, path):
    """Connect the user's browser to the kernel of a notebook that nobody has run."""
    assert send_order(server, path, run=False)[-1] == {"done": True}
    (session,) = find_sessions(server, path)
    with server.kernel(session["kernel"]["id"]) as user:
        yield user


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("between", [LOAD, "1 / 0"], "Code cell 3 of 3 .*failed: ZeroDivisionError"),
        pytest.param("toolless", ["1 + 1"], "offers no tools", marks=pytest.mark.slow),
    ],
)
def test_what_a_user_computes_between_the_cells_survives_their_failure(server, name, cells, reason):
    gate = Gate(server, name)
    path = write(server, f"{name}.ipynb", gate.cell, *cells)
    with user_of(server, path) as user, ThreadPoolExecutor() as threads:
        order = threads.submit(send_order, server, path)
        gate.wait()
        request = user.start("mine = 1")
        gate.open()
        error = order.result()[-1]["error"]
        user.finish(request)
        assert user.run("print(mine)").stdout == "1\n"
    assert re.search(f"{reason}.*was not restarted, because someone else", error), error


def test_what_a_user_computes_survives_if_a_cell_of_the_users_fails_before_ours(server):
    """Then ipykernel drops the cells that wait."""
    gates = [Gate(server, f"drops{number}") for number in range(2)]
    path = write(server, "drops.ipynb", gates[0].cell, LOAD)
    with user_of(server, path) as user, ThreadPoolExecutor() as threads:
        order = threads.submit(send_order, server, path)
        gates[0].wait()
        user.client.execute(f"mine = 1\n{gates[1].cell}\n{FAIL}")
        gates[0].open()
        gates[1].wait()
        gates[1].open()
        error = order.result()[-1]["error"]
        until(lambda: user.run("print(mine)").stdout == "1\n")
    assert re.search("Code cell 2 of 2 .*was not run.*was not restarted", error), error


def test_nothing_runs_if_a_cell_of_the_users_fails_when_it_would_begin(server):
    gate = Gate(server, "early")
    path = write(server, "early.ipynb", LOAD)
    with user_of(server, path) as user, ThreadPoolExecutor() as threads:
        user.client.execute(f"mine = 1\n{gate.cell}\n{FAIL}")
        gate.wait()
        order = threads.submit(send_order, server, path)
        gate.open()
        assert "Nothing was run" in order.result()[-1]["error"]
        until(lambda: user.run("print(mine)").stdout == "1\n")


@pytest.mark.slow
def test_a_users_cells_that_wait_behind_one_that_fails_still_run(server):
    gate = Gate(server, "behind")
    path = write(server, "behind.ipynb", f"{gate.cell}\n{LOAD}\n1 / 0")
    with user_of(server, path) as user, ThreadPoolExecutor() as threads:
        order = threads.submit(send_order, server, path)
        gate.wait()
        request = user.start("print('mine')")
        gate.open()
        assert "ZeroDivisionError" in order.result()[-1]["error"]
        assert user.finish(request).stdout == "mine\n"


@pytest.fixture(scope="module")
def hasty_server(module_home):
    """A server that waits for kernels only for a moment."""
    home = module_home / "hasty"
    home.mkdir()
    env = {"MCP_NOTEBOOK_START_TIMEOUT": "2"}
    with jupyter_server(home, env=env) as server:
        yield server


@pytest.mark.slow
def test_a_kernel_that_is_busy_with_a_users_cell_is_named_as_the_cause(hasty_server):
    server, gate = hasty_server, Gate(hasty_server, "busy")
    path = write(server, "busy.ipynb", LOAD)
    with user_of(server, path) as user:
        request = user.start(gate.cell)
        gate.wait()
        error = send_order(server, path)[-1]["error"]
        gate.open()
        user.finish(request)
    assert "The kernel of busy.ipynb did not answer within 2 s: it is running a cell" in error
    assert "Nothing was run" in error


# -- what cannot be run ----------------------------------------------------------------------------


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
