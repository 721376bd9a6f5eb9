"""The cards of a real kernel: one for each cell, which says nothing that ages."""

import re
import subprocess

import nbformat
import pytest
from live import Link, kernel_env, record_of
from nbclient import NotebookClient

from mcp_notebook.wire import messages


@pytest.fixture
def kernel(shared_kernel):
    """A kernel with the extension and no tools."""
    shared_kernel.ok("%unload_ext mcp_notebook")
    shared_kernel.ok("%reset -f")
    shared_kernel.ok("%load_ext mcp_notebook\nfrom mcp_notebook import Tool, mcp_tool, registry")
    return shared_kernel


def show(kernel, code, cell=None):
    """Run a cell, and return the plain texts of its cards."""
    return [data["text/plain"] for data in kernel.ok(code, cell=cell).displays]


def test_a_cell_has_one_card_of_all_its_tools_however_they_are_declared(kernel):
    (card,) = show(
        kernel,
        "@mcp_tool\ndef a(): 'A.'\ndef b(): 'B.'\n%mcp_tool b\n"
        "registry.add(Tool(name='c', description='C.', handler=a))",
    )
    assert re.findall(r"MCP tool (\w)", card) == ["a", "b", "c"]
    (card,) = show(kernel, "%%mcp_tool\n@mcp_tool(title='D')\ndef d(): 'D.'\ndef e(): 'E.'")
    assert re.findall(r"MCP tool (\w)", card) == ["d", "e"]


def test_a_tool_that_another_declares_has_no_card_in_the_cell_that_calls_it(kernel):
    show(kernel, "@mcp_tool\ndef make(): registry.add(Tool(name='new', handler=make)); 'Make.'")
    assert show(kernel, "%mcp call make") == []
    assert "new" in kernel.ok("%mcp status").text


def test_a_tool_that_follows_its_function_has_a_card_where_that_has_changed_it(kernel):
    show(kernel, "%%mcp_tool\ndef a(x: int): 'A.'")
    assert show(kernel, "def a(x: int): 'A.'; return x") == []
    (card,) = show(kernel, "def a(x: int, y: str): 'Another.'")
    assert card == "MCP tool a(x: int, y: str)\n    Another."


@pytest.mark.smoke
def test_calls_and_clients_change_no_output(kernel):
    show(kernel, "%%mcp_tool\ndef a(): return 1")
    name = messages.ListedName(tool="a", name="sales_a", reason="Two.", next_step="Rename it.")
    with Link(record_of(kernel)) as link:
        link.send(messages.Clients(clients=[messages.ClientCount(name="chat")], names=[name]))
        link.call("a")
    request = kernel.start("print('end')")
    kinds = set()
    while "end" not in str((message := kernel.client.get_iopub_msg(timeout=60))["content"]):
        kinds.add(message["msg_type"])
    kernel.finish(request)
    assert kinds <= {"status", "execute_input"}


def test_the_names_that_clients_see_are_in_the_list_and_the_status(kernel):
    show(kernel, "%%mcp_tool\ndef rain(): 'R.'\ndef snow(): 'S.'")
    name = messages.ListedName(
        tool="rain", name="sales_rain", reason="Another notebook has one.", next_step="Rename it."
    )
    with Link(record_of(kernel)) as link:
        link.send(messages.Clients(clients=[], names=[name]))
        link.call("snow")  # the kernel has read what came before
        listed = kernel.ok("%mcp list")
        assert "sales_rain()  R." in listed.displays[0]["text/plain"]
        assert listed.stdout.startswith("`rain` is `sales_rain` for clients. Another")
        assert listed.stdout.endswith("Rename it.\n")
        assert "`rain` is `sales_rain` for clients." in kernel.ok("%mcp status").text


CELLS = (
    "%load_ext mcp_notebook\nfrom mcp_notebook import Tool, mcp_tool, registry",
    "class Unit:\n    'Its `repr` has an address in memory.'",
    "%%mcp_tool --read-only --related later\ndef a(n: int = 3, unit: object = Unit()): 'A.'",
    "%%mcp_tool later(city: str = 'Oslo') --priority 2\nprint(city)",
    "%mcp call a n=4",
    "def a(n: int = 5): 'Another.'",
    "@mcp_tool(confirm=True)\ndef drop(): 'D.'",
    "del drop",
    *(f"@mcp_tool\nasync def wait_{number}(): 'W.'" for number in range(3)),
)


@pytest.mark.slow
def test_running_all_cells_again_in_another_kernel_gives_the_same_bytes(home):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    files = []
    for _ in range(2):
        client = NotebookClient(notebook, kernel_name="python3", record_timing=False)
        client.execute(env=kernel_env(home), cwd=str(home), stderr=subprocess.DEVNULL)
        files.append(nbformat.writes(notebook))
    assert files[0] == files[1]
    assert files[0].count("MCP tool") == 2 * 7


def test_a_cell_that_is_a_body_names_what_later_cells_of_the_file_assign_again(kernel, tmp_path):
    body = '%%mcp_tool above(n: int = 0)\n"Above."\nlen(df) + n'
    path = tmp_path / "sales.ipynb"
    kernel.ok(f"__vsc_ipynb_file__ = {str(path)!r}")
    kernel.ok("df = [1, 2]")  # and the path is followed
    unknown = show(kernel, body)
    cells = [nbformat.v4.new_code_cell(code) for code in ("df = [1, 2]", body, "df = []", "df = 1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    (card,) = show(kernel, f"{body} + 1")  # edited, and not saved
    assert "Warning: `df` is assigned again in cells 3 and 4: calls get what is set there." in card
    path.write_text("{}")
    assert show(kernel, body) == unknown
    assert "assigned again" not in unknown[0]
