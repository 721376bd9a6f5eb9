"""What a notebook's file last offered is listed while its kernel still starts."""

import json
import os
import sys
from contextlib import contextmanager

import nbformat
import pytest
from bridges import INITIALIZE, bridge
from notebook_files import write_notebook

from mcp_notebook.bridge.headless import offers
from mcp_notebook.bridge.headless.notebook_reader import describe_code, read_notebook
from mcp_notebook.bridge.headless.offers import find_offer, keep_offer
from mcp_notebook.text.missing_tools import READ_RESOURCE
from mcp_notebook.wire.messages import ToolInfo

WAIT = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)"
TOOL = "%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1"
MAYBE = "%%mcp_tool --name two\ndef second() -> int:\n    'Two.'\n    return 2"
TOOLS = [ToolInfo(name="one", input_schema={"type": "object"})]


def _write(path, *cells):
    return write_notebook(path, *cells)


def _keep(home, path, tools=TOOLS):
    keep_offer(home, path, describe_code(read_notebook(path)[1]), path.stem, tools)


def _request(running, method, params=None):
    message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params or {}}
    running.send(json.dumps(message).encode())


def _wait_for_list(running):
    while (message := running.message()).get("id") != "tools/list":
        pass
    return [tool["name"] for tool in message["result"]["tools"] if tool["name"] != READ_RESOURCE]


def _run_once(running):
    _request(running, "tools/call", {"name": "one"})
    while running.message().get("id") != "tools/call":
        pass


@contextmanager
def _client(home, path, **env):
    with bridge(home, "stdio", str(path), env=env, stdin=-1) as running:
        running.send(json.dumps(INITIALIZE).encode())
        assert running.message()["id"] == "hello"
        running.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield running
        running.process.stdin.close()
        running.wait()


@pytest.mark.smoke
def test_tools_are_listed_while_their_kernel_starts_and_a_call_waits_and_says_so(home):
    path = _write(home / "sums.ipynb", WAIT, "%load_ext mcp_notebook", TOOL)
    (home / "go").touch()
    with _client(home, path) as running:
        _run_once(running)
    (home / "go").unlink()
    with _client(home, path) as running:
        _request(running, "tools/list")
        assert _wait_for_list(running) == ["one"]
        _request(running, "tools/call", {"name": "one", "_meta": {"progressToken": "p"}})
        said = running.message()["params"]
        assert (
            said["message"] == "The kernel of 'sums' is starting: the call waits until it is ready."
        )
        (home / "go").touch()
        while (answer := running.message()).get("method") == "notifications/progress":
            pass  # but the list, which is as it was said, has not changed
        assert answer.get("method") is None, answer
        assert answer["result"]["content"][0]["text"] == "1"


@pytest.mark.slow
def test_an_offer_that_the_kernel_does_not_keep_is_corrected(home):
    cells = (
        f"import pathlib\nif pathlib.Path('more').exists():\n    get_ipython().run_cell({MAYBE!r})"
    )
    path = _write(home / "sums.ipynb", WAIT, "%load_ext mcp_notebook", TOOL, cells)
    (home / "go").touch()
    (home / "more").touch()
    with _client(home, path) as running:
        _run_once(running)
    (home / "more").unlink()
    (home / "go").unlink()
    with _client(home, path) as running:
        _request(running, "tools/list")
        assert _wait_for_list(running) == ["one", "two"]
        _request(running, "tools/call", {"name": "two"})
        (home / "go").touch()
        messages = [running.message(), running.message()]
        methods = [message.get("method") for message in messages]
        assert "notifications/tools/list_changed" in methods
        answer = messages[methods.index(None)]
        assert "two" in json.dumps(answer.get("error") or answer["result"]["content"])
        _request(running, "tools/list")
        assert _wait_for_list(running) == ["one"]


@pytest.mark.slow
def test_after_the_code_has_changed_the_first_list_is_that_of_its_source(home):
    path = _write(home / "sums.ipynb", WAIT, "%load_ext mcp_notebook", TOOL)
    (home / "go").touch()
    with _client(home, path) as running:
        _run_once(running)
    (home / "go").unlink()
    _write(path, WAIT, "%load_ext mcp_notebook", TOOL.replace("one", "other"))
    with _client(home, path) as running:
        _request(running, "tools/list")
        assert _wait_for_list(running) == ["other"]


@pytest.mark.slow
def test_where_the_source_tells_nothing_the_first_list_waits_for_the_kernel(home):
    cell = "get_ipython().run_cell_magic('mcp_tool', '', 'def one() -> int:\\n    return 1')"
    path = _write(home / "sums.ipynb", "%load_ext mcp_notebook", cell)
    with _client(home, path) as running:
        _request(running, "tools/list")
        assert _wait_for_list(running) == ["one"]


def test_an_offer_is_of_one_notebook_and_its_code_and_only_the_user_can_read_it(tmp_path):
    path = _write(tmp_path / "a.ipynb", "a = 1")
    same = _write(tmp_path / "b.ipynb", "a = 1")
    assert find_offer(tmp_path, path) is None
    _keep(tmp_path, path)
    assert find_offer(tmp_path, path).tools == TOOLS
    assert find_offer(tmp_path, same) is None
    (kept,) = (tmp_path / "offers").iterdir()
    if sys.platform != "win32":
        assert kept.stat().st_mode & 0o777 == 0o600
    cell = nbformat.v4.new_code_cell("a = 1", outputs=[nbformat.v4.new_output("stream", text="1")])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    assert find_offer(tmp_path, path).tools == TOOLS


def test_after_an_edit_what_only_running_code_declared_is_still_offered_and_marked(tmp_path):
    path = _write(tmp_path / "a.ipynb", TOOL, "declare()")
    late = ToolInfo(name="late", description="Late.", input_schema={"type": "object"})
    _keep(tmp_path, path, [*TOOLS, late])
    assert [tool.name for tool in find_offer(tmp_path, path).tools] == ["one", "late"]
    _write(path, TOOL.replace("one", "other"), "declare()")
    offer = find_offer(tmp_path, path)
    assert [tool.name for tool in offer.tools] == ["other", "late"]  # `one` is gone from the source
    marked = "Late.\n\n(As it was when the notebook last ran; its code has changed since.)"
    assert offer.tools[1].description == marked
    _write(path, "declare()")
    assert [tool.name for tool in find_offer(tmp_path, path).tools] == ["late"]
    assert offer.code == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"code": 1}', b"\xff"])
def test_an_offer_that_cannot_be_read_is_none(tmp_path, content):
    path = _write(tmp_path / "a.ipynb", "a = 1")
    _keep(tmp_path, path)
    (kept,) = (tmp_path / "offers").iterdir()
    kept.write_bytes(content)
    assert find_offer(tmp_path, path) is None


def test_a_notebook_that_is_gone_or_broken_offers_nothing(tmp_path):
    path = _write(tmp_path / "a.ipynb", "a = 1")
    _keep(tmp_path, path)
    path.write_text("{")
    assert find_offer(tmp_path, path) is None
    path.unlink()
    assert find_offer(tmp_path, path) is None


def test_offers_are_kept_within_bounds(tmp_path):
    folder = tmp_path / "offers"
    folder.mkdir()
    for age in range(offers.MAX_OFFERS):
        (folder / f"{age}.json").touch()
        os.utime(folder / f"{age}.json", (1_000_000 - age, 1_000_000 - age))
    path = _write(tmp_path / "a.ipynb", "a = 1")
    _keep(tmp_path, path)
    assert len(list(folder.iterdir())) == offers.MAX_OFFERS
    assert not (folder / f"{offers.MAX_OFFERS - 1}.json").exists()
    assert find_offer(tmp_path, path) is not None
    large = ToolInfo(name="large", description="x" * offers.MAX_OFFER_BYTES, input_schema={})
    _keep(tmp_path, path, [large])
    assert find_offer(tmp_path, path) is None
