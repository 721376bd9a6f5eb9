"""A notebook with a lock: what its author sees, and what clients of ``--locked`` get."""

import json
import subprocess
from pathlib import Path

import pytest
from clients import ERAS, LOAD, connected, text_of
from forked_command import list_words
from live import Link, kernel_env, live_kernel, record_of
from mcp import MCPError
from notebook_files import write_notebook

from mcp_notebook import meta_keys
from mcp_notebook.lock.lock_file import describe, find_path, read_lock, write_lock
from mcp_notebook.wire import messages

TOP = '%%mcp_tool --read-only\ndef top(year: int = 2015) -> str:\n    "Top."\n    return "x"'
TOTAL = '%%mcp_tool --read-only\ndef total() -> str:\n    "Total."\n    return "all"'
NEW = TOTAL.replace("total", "late")


def lock_tools(kernel):
    """Lock what the kernel offers, on a day."""
    notebook = Path(record_of(kernel).notebook)
    path = find_path(notebook)
    with Link(record_of(kernel)) as link:
        write_lock(notebook, {info.name: describe(info) for info in link.welcome.tools})
    lock = json.loads(path.read_text()) | {"locked": "2026-11-28"}
    path.write_text(json.dumps(lock))
    return path


@pytest.fixture
def sales(home):
    """A notebook whose tools `top` and `total` are locked."""
    path = write_notebook(home / "sales.ipynb", LOAD, TOP, TOTAL)
    with live_kernel(home, notebook=str(path)) as kernel:
        for cell in (LOAD, TOP, TOTAL):
            kernel.ok(cell)
        lock_tools(kernel)
        yield kernel


def show_card(kernel, cell):
    (data,) = kernel.ok(cell).displays
    return data["text/plain"]


def test_a_card_says_in_one_line_what_differs_from_the_lock(sales):
    assert "locked" not in show_card(sales, TOP)
    card = show_card(sales, TOP.replace("year: int = 2015", "year: int, most: int = 3"))
    line = "Changed since it was locked on 28 Nov 2026: `year` became required (1 more change)."
    assert f"Warning: {line}" in card
    assert "locked" not in show_card(sales, TOP)
    assert "locked" not in show_card(sales, NEW)


def test_a_lock_that_is_damaged_hides_no_card(sales):
    path = find_path(Path(record_of(sales).notebook))
    path.write_text("<<<<<<< HEAD")
    assert "MCP tool top" in show_card(sales, TOP)
    path.write_text('{"locked": "2026-11-28", "entries": {"top": {"annotations": 5}}}')
    assert "its entry in the lock is damaged" in show_card(sales, TOP)


def test_the_panel_shows_changes_and_calls_and_locks_again_with_a_click(sales):
    notebook = Path(record_of(sales).notebook)
    path = find_path(notebook)
    before = path.read_bytes()
    sales.ok(TOP.replace("year: int = 2015", "year: int"))
    with Link(record_of(sales)) as link, Link(record_of(sales)) as page:
        link.call("top", year=2015)
        page.send(messages.WatchNotebook())
        line, *changes = find_tool(page.receive(), "top").changes
        assert line.startswith("Changed since it was locked on 28 Nov 2026: `year` became req")
        assert line.endswith(" unknown client called it 1 time since.")
        assert changes == [
            "`year` became required: breaking",
        ]
        assert path.read_bytes() == before  # nothing is written without a click
        page.send(messages.LockTool(id=1, tool="top"))
        (answer,) = page.receive_until(lambda each: isinstance(each, messages.PanelAnswer))[-1:]
        assert answer.message == "Locked top as it is now, in sales.tools.lock."
        state = page.receive_until(lambda each: getattr(each, "tools", None))[-1]
        assert find_tool(state, "top").changes == []
        assert read_lock(notebook).entries.keys() == {"top", "total"}
        path.unlink()
        page.send(messages.LockTool(id=2, tool="top"))
        (answer,) = page.receive_until(lambda each: isinstance(each, messages.PanelAnswer))[-1:]
        assert answer.is_error
        assert answer.message.startswith("sales.ipynb has no lock: `mcp-notebook check sales.ipynb")


def find_tool(state, name):
    return next(tool for tool in state.tools if tool.name == name)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_what_breaks_a_caller_is_not_offered_and_the_call_says_why(sales, home, era):
    sales.ok(TOP.replace("year: int = 2015", "year: int"))
    sales.ok(TOTAL.replace('"Total."', '"All of it."'))  # to look at
    sales.ok(NEW)
    async with connected(home, era, "http", "--locked") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"total", "late", "read_notebook_resource"}
        assert tools["total"].meta[meta_keys.DIGEST].startswith("sha256:")
        assert text_of(await client.call_tool("total", {})) == "all"
        assert (
            "It has changed since it was locked on 28 Nov 2026: `year` became required. Its author "
            "can accept that with `mcp-notebook check sales.ipynb --lock`."
            in await refuse(client, "top")
        )
    async with connected(home, era, "http") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"top", "total", "late", "read_notebook_resource"}
        assert meta_keys.DIGEST not in (tools["total"].meta or {})


@pytest.mark.anyio
async def test_without_a_lock_a_live_notebook_offers_nothing_and_says_how_to_write_one(sales, home):
    find_path(Path(record_of(sales).notebook)).unlink()
    async with connected(home, "auto", "stdio", "--locked") as client:
        assert (await client.list_tools()).tools == []
        assert (
            "sales.ipynb has no lock: `mcp-notebook check sales.ipynb --lock` writes one."
            in await refuse(client, "total")
        )


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["sales.ipynb", "."])
async def test_a_headless_notebook_is_compared_when_it_runs_and_before_it_runs_again(
    sales, home, place
):
    path = Path(record_of(sales).notebook)
    write_notebook(path, LOAD, TOP.replace("year: int = 2015", "year: int"), TOTAL, NEW)
    for _ in range(2):
        async with connected(home, "auto", "stdio", str(home / place), "--locked") as client:
            assert text_of(await client.call_tool("total", {})) == "all"
            assert text_of(await client.call_tool("late", {})) == "all"
            assert "`year` became required" in await refuse(client, "top")
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"total", "late"} <= names
            assert "top" not in names


@pytest.mark.anyio
async def test_what_only_the_source_declares_is_compared_when_it_has_run(home):
    point = "import dataclasses as dc\n@dc.dataclass\nclass Point:\n    x: int"
    mark = TOTAL.replace("total()", "mark(at: Point | None = None)")
    path = write_notebook(home / "sales.ipynb", LOAD, point, mark, TOP)
    assert "sales.tools.lock." in run(home, "check", "--lock", path).stderr
    write_notebook(path, LOAD, point, mark, TOP.replace("year: int = 2015", "year: int"))
    async with connected(home, "auto", "stdio", str(path), "--locked") as client:
        # Its first list comes from the source, which does not tell what a `Point` is.
        assert text_of(await client.call_tool("mark", {"at": {"x": 1}})) == "all"
        assert "`year` became required" in await refuse(client, "top", year=2)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "top" not in tools
        entry = read_lock(path).entries["mark"]
        assert tools["mark"].meta[meta_keys.DIGEST] == entry["digest"]


def run(home, command, option, path):
    """Run a command that ends by itself."""
    return subprocess.run(
        list_words(command, option, str(path)),
        env=kernel_env(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_headless_notebook_without_a_lock_is_not_served(home):
    path = write_notebook(home / "sales.ipynb", LOAD, TOP)
    for command in ("serve", "stdio"):
        done = run(home, command, "--locked", path)
        assert done.returncode == 1
        assert "`mcp-notebook check sales.ipynb --lock` writes one." in done.stderr
    find_path(path).write_text("<<<<<<< HEAD")
    done = run(home, "serve", "--locked", path)
    assert "The lock sales.tools.lock cannot be read (JSON is malformed" in done.stderr


async def refuse(client, name, **arguments):
    """Call a tool, and return the error."""
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return str(error)
    assert result.is_error
    return text_of(result)
