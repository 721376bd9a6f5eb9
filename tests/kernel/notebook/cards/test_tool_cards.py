"""The cards of a real kernel: one for each cell, and what they say after a change."""

import os
import re
import time

import pytest
from live import TIMEOUT, Link, record_of

from mcp_notebook.wire import messages

MADE = re.compile(r"Made on (\d{4}-\d\d-\d\d \d\d:\d\d) in kernel (\d+)\.")


@pytest.fixture
def kernel(shared_kernel):
    """A kernel with the extension and no tools."""
    shared_kernel.ok("%unload_ext mcp_notebook")
    shared_kernel.ok("%reset -f")
    shared_kernel.ok("%load_ext mcp_notebook\nfrom mcp_notebook import Tool, mcp_tool, registry")
    return shared_kernel


class Screen:
    """What a frontend shows: the displays of cells, brought up to date by their updates."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.cards = {}
        self.updates = 0

    def run(self, code, cell=None):
        """Run a cell and take all that it shows and changes; return the ids of its displays."""
        request = self.kernel.start(code, cell=cell)
        new = []
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=TIMEOUT)
            new += self.take(message)
            is_own = message["parent_header"].get("msg_id") == request
            content = message["content"]
            if is_own and content.get("execution_state") == "idle":
                break
        while True:
            reply = self.kernel.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == request:
                return new

    def take(self, message):
        content = message["content"]
        display_id = content.get("transient", {}).get("display_id")
        if message["msg_type"] == "display_data":
            self.cards[display_id] = content["data"]["text/plain"]
            return [display_id]
        if message["msg_type"] == "update_display_data":
            self.updates += 1
            self.cards[display_id] = content["data"]["text/plain"]
        return []

    def wait_for_update(self):
        before = self.updates
        while self.updates == before:
            self.take(self.kernel.client.get_iopub_msg(timeout=TIMEOUT))


@pytest.fixture
def screen(kernel):
    return Screen(kernel)


def test_a_cell_has_one_card_of_all_its_tools_however_they_are_declared(screen):
    (card,) = screen.run(
        "@mcp_tool\ndef a(): 'A.'\ndef b(): 'B.'\n%mcp_tool b\n"
        "registry.add(Tool(name='c', description='C.', handler=a))"
    )
    assert re.findall(r"MCP tool (\w)", screen.cards[card]) == ["a", "b", "c"]
    (card,) = screen.run("%%mcp_tool\n@mcp_tool(title='D')\ndef d(): 'D.'\ndef e(): 'E.'")
    assert re.findall(r"MCP tool (\w)", screen.cards[card]) == ["d", "e"]


def test_a_cell_without_new_tools_shows_no_card(screen):
    assert screen.run("print(1)") == []
    assert screen.run("@mcp_tool\ndef a(): 'A.'\nregistry.remove('a')") == []


def test_a_tool_that_another_declares_has_no_card_in_the_cell_that_calls_it(screen):
    screen.run("@mcp_tool\ndef make(): registry.add(Tool(name='new', handler=make)); 'Make.'")
    assert screen.run("%mcp call make") == []
    assert "new" in screen.kernel.ok("%mcp status").stdout


def test_tools_that_were_declared_before_the_extension_was_loaded_have_a_card(screen):
    screen.run("%unload_ext mcp_notebook\n@mcp_tool\ndef early(): 'E.'")
    (card,) = screen.run("%load_ext mcp_notebook")
    assert "early()" in screen.cards[card]


def test_a_card_says_when_it_was_made_and_in_which_kernel(screen):
    earliest = time.strftime("%Y-%m-%d %H:%M")
    (card,) = screen.run("@mcp_tool\ndef a(): 'A.'")
    when, kernel = MADE.search(screen.cards[card]).groups()
    assert earliest <= when <= time.strftime("%Y-%m-%d %H:%M")
    assert int(kernel) == record_of(screen.kernel).pid != os.getpid()
    assert f"This is kernel {kernel};" in screen.kernel.ok("%mcp status").stdout


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("registry.remove('a')", "[gone]\n    The notebook removed it at "),
        ("del a", "[gone]\n    `a` was deleted."),
        ("a = 3", "[gone]\n"),
        ("registry.update('a', name='b')", "[renamed]\n    Since "),
        ("%unload_ext mcp_notebook", "[gone]\n    The notebook unloaded mcp_notebook at "),
    ],
)
def test_the_card_of_a_tool_that_is_gone_says_so(screen, cell, said):
    (card,) = screen.run("@mcp_tool\ndef a(): 'A.'")
    screen.run(cell)
    assert said in screen.cards[card]
    assert "del a  " not in screen.cards[card]
    assert MADE.search(screen.cards[card])


def test_a_tool_that_leaves_a_card_of_several_leaves_the_others_on_it(screen):
    (card,) = screen.run("%%mcp_tool\ndef a(): 'A.'\ndef b(): 'B.'")
    assert "Remove them       del a, b  (" in screen.cards[card]
    screen.run("del a")
    assert "MCP tool a()\n    [gone]" in screen.cards[card]
    assert "MCP tool b()\n    [live]" in screen.cards[card]
    assert "Remove it         del b  (" in screen.cards[card]


@pytest.mark.parametrize(
    "declare",
    [
        "registry.add(Tool(name='a', description='A.', handler=print))",
        "class Pad:\n    def a(self): 'A.'\npad = Pad()\n%mcp_tool pad.a",
    ],
)
def test_a_tool_that_is_not_a_variable_has_the_line_of_the_registry_on_its_card(screen, declare):
    (card,) = screen.run(declare)
    line = 'from mcp_notebook import registry; registry.remove("a")'
    assert f"Remove it         {line}  (" in screen.cards[card]
    screen.run(line)
    assert "[gone]" in screen.cards[card]


def test_a_card_follows_its_function(screen):
    (card,) = screen.run("%%mcp_tool\ndef a(x: int): 'A.'")
    screen.run("def a(x: int, y: str): 'Another.'")
    assert "- y: text, required" in screen.cards[card]
    assert "Another." in screen.cards[card]
    assert "[live]" in screen.cards[card]


def test_a_warning_leaves_the_card_when_its_cause_is_gone(screen):
    (card,) = screen.run("%%mcp_tool --related b\ndef a(): 'A.'")
    assert "this notebook has no tool of that name yet" in screen.cards[card]
    screen.run("@mcp_tool\ndef b(): 'B.'")
    assert "this notebook has no tool of that name yet" not in screen.cards[card]


def test_the_last_cell_that_declares_a_tool_has_its_card(screen):
    (old,) = screen.run("%%mcp_tool\ndef a(): 'Old.'\ndef b(): 'B.'")
    (new,) = screen.run("%%mcp_tool\ndef a(): 'New.'")
    assert "MCP tool a()\n    [replaced]\n    Another cell" in screen.cards[old]
    assert "MCP tool b()\n    [live]" in screen.cards[old]
    assert "[live]" in screen.cards[new]
    screen.run("del a")
    assert "[replaced]" in screen.cards[old]
    assert "[gone]" in screen.cards[new]


def test_a_cell_that_runs_again_has_the_card_of_its_last_run(screen):
    code = "%%mcp_tool\ndef a(): 'A.'"
    screen.run(code, cell="c1")
    before = screen.updates
    (new,) = screen.run(code, cell="c1")
    assert screen.updates == before  # the first one is cleared with the cell's outputs
    assert "[live]" in screen.cards[new]


def test_a_reload_keeps_the_cards_and_a_tool_that_returns_is_live_again(screen):
    (card,) = screen.run("@mcp_tool\ndef a(): 'A.'")
    screen.run("%reload_ext mcp_notebook")
    assert "[live]" in screen.cards[card]
    screen.run("%unload_ext mcp_notebook")
    assert "[gone]" in screen.cards[card]
    assert screen.run("%load_ext mcp_notebook") == []
    assert "[live]" in screen.cards[card]
    screen.run("del a")
    assert "[gone]" in screen.cards[card]


def test_a_card_changes_while_no_cell_runs(screen):
    (card,) = screen.run(
        "import threading\nready = threading.Event()\n@mcp_tool\ndef a(): 'A.'\n"
        "def wait(): ready.wait(60); registry.remove('a')\nthreading.Thread(target=wait).start()"
    )
    screen.run("ready.set()")
    while "[gone]" not in screen.cards[card]:
        screen.wait_for_update()


def test_calls_change_no_card(screen):
    screen.run("%%mcp_tool\ndef a(): return 1")
    before = screen.updates
    for _ in range(3):
        screen.run("%mcp call a")
    assert screen.updates == before


def test_a_card_says_under_which_name_clients_see_its_tool(screen):
    (card,) = screen.run("%%mcp_tool\ndef rain(): 'R.'\ndef snow(): 'S.'")
    name = messages.ListedName(
        tool="rain", name="sales_rain", reason="Another notebook has one.", next_step="Rename it."
    )
    said = "[live]\n    Clients see it as `sales_rain`. Another notebook has one. Rename it."
    with Link(record_of(screen.kernel)) as link:
        link.send(messages.Clients(clients=[], names=[name]))
        screen.wait_for_update()
        assert f"MCP tool rain()\n    {said}" in screen.cards[card]
        assert "MCP tool snow()\n    [live]\n    S." in screen.cards[card]
        listed = screen.kernel.ok("%mcp list")
        assert "sales_rain()  R." in listed.displays[0]["text/plain"]
        assert listed.stdout.startswith("`rain` is `sales_rain` for clients. Another")
        assert listed.stdout.endswith("Rename it.\n")
        assert "`rain` is `sales_rain` for clients." in screen.kernel.ok("%mcp status").stdout
        (new,) = screen.run("%%mcp_tool\ndef rain(x: int): 'R.'")
        assert said in screen.cards[new]
    while said in screen.cards[new]:
        screen.wait_for_update()


def test_news_of_clients_run_no_code_of_the_author(screen):
    screen.run(
        "import threading\nthreads = set()\nclass Unit(int):\n    def __repr__(self):\n"
        "        threads.add(threading.current_thread().name)\n        return 'mm'"
    )
    (card,) = screen.run("%%mcp_tool\ndef rain(unit: int = Unit(3)): 'R.'")
    assert "rain(unit: int = mm)" in screen.cards[card]
    name = messages.ListedName(tool="rain", name="a_rain", reason="Two.", next_step="Rename it.")
    with Link(record_of(screen.kernel)) as link:
        link.send(messages.Clients(clients=[], names=[name]))
        screen.wait_for_update()
    assert "a_rain" in screen.cards[card]
    assert screen.kernel.ok("print(*threads)").stdout == "MainThread\n"
