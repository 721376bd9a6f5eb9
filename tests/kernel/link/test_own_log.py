"""What the package itself logs, or fails with, is in its own file, and nowhere else."""

import pytest
from live import Link, kernel_with, record_of, text_of, until

TOOLS = """
import asyncio, logging, sys, threading
from mcp_notebook import mcp_tool
from mcp_notebook.kernel.notebook.loaded_extension import EXTENSION
logging.basicConfig(level=logging.INFO)
ours = logging.getLogger("mcp_notebook.kernel.link")

def fail(*_args):
    raise RuntimeError("of ours")

@mcp_tool(run="thread")
def log_within() -> None:
    'Log.'
    ours.error("ours within")
    logging.getLogger("sales").error("the user's")
"""
kernel = kernel_with(TOOLS)


def read_log(kernel):
    return (kernel.home / ".mcp-notebook" / "kernel.log").read_text(encoding="utf-8")


def test_our_lines_are_neither_in_cells_nor_in_results(kernel):
    assert kernel.ok("ours.warning('ours outside')").text.strip() == ""
    with Link(record_of(kernel)) as link:
        text = text_of(link.call("log_within"))
    assert "user's" in text
    assert "ours" not in text
    assert "WARNING mcp_notebook.kernel.link: ours outside" in read_log(kernel)
    assert "ours within" in read_log(kernel)


@pytest.mark.parametrize(
    "cell",
    [
        "threading.Thread(target=fail, name='mcp-notebook-read').start()",
        "getattr(get_ipython(), EXTENSION)._endpoint._loop.call_soon_threadsafe(fail);",
        "getattr(get_ipython(), EXTENSION).registry.follow = fail",
    ],
    ids=["thread", "loop", "event"],
)
def test_our_tracebacks_are_not_in_cells(kernel, cell):
    try:
        (kernel.home / ".mcp-notebook" / "kernel.log").write_text("")
        assert kernel.ok(cell).text.strip() == ""
        until(lambda: "RuntimeError: of ours" in read_log(kernel))
        assert kernel.ok("1;").text.strip() == ""
    finally:
        kernel.ok("vars(getattr(get_ipython(), EXTENSION).registry).pop('follow', None);")


def test_the_users_own_threads_fail_in_their_cells(kernel):
    output = kernel.ok("t = threading.Thread(target=fail); t.start(); t.join()")
    assert "of ours" in output.stderr  # in colours, from Python 3.13


def test_the_log_is_bounded_and_a_folder_in_its_place_hurts_nothing(kernel):
    kernel.ok("for _ in range(30): ours.error('x' * 100_000)")
    assert (kernel.home / ".mcp-notebook" / "kernel.log").stat().st_size < 1_200_000
    log = kernel.home / ".mcp-notebook" / "kernel.log"
    kernel.ok("logging.getLogger('mcp_notebook').handlers[0].close()")
    log.unlink()
    log.mkdir()
    assert kernel.ok("ours.error('lost')").text.strip() == ""
    log.rmdir()
