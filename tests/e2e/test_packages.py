"""An installed package served by `--package`, without a notebook of its own."""

import subprocess

import nbformat
import pytest
from clients import LOAD, connected, text_of
from forked_command import list_words
from installed_packages import ACME, install
from listing import list_tools
from live import TIMEOUT, kernel_env

pytestmark = pytest.mark.anyio
FILES = (
    ACME
    + '''
@mcp_tool(read_only=True)
def where() -> str:
    """Tell the current directory."""
    import os
    return os.getcwd()
'''
)


@pytest.fixture
def site(home, monkeypatch):
    """The folder in which the command is started, with a package that Python finds there."""
    folder = home / "work"
    folder.mkdir()
    install(folder, "acme", FILES, acme="acme")
    install(folder, "broken", "raise RuntimeError('no licence')\n", "broken-tools", broken="broken")
    monkeypatch.chdir(folder)
    return folder


async def test_its_tools_are_served_from_the_folder_of_the_command(home, site, era, transport):
    async with connected(home, era, transport, "--package", "acme") as client:
        names = [tool.name for tool in await list_tools(client)]
        assert names == ["vat", "due", "where", "ledger_book"]
        result = await client.call_tool("vat", {"country": "FR", "net": 10})
        assert text_of(result) == "12.0"
        assert text_of(await client.call_tool("where", {})) == str(site)


async def test_a_notebook_beside_it_may_have_a_tool_of_the_same_name(home, site):
    cells = [LOAD, "%%mcp_tool\ndef vat() -> str:\n    'Mine.'\n    return 'mine'"]
    code = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=code), site / "bills.ipynb")
    arguments = ("bills.ipynb", "--package", "acme")
    async with connected(home, "auto", "stdio", *arguments) as client:
        names = [tool.name for tool in await list_tools(client)]
        assert {"bills_vat", "acme_vat", "due"} <= {*names}
        assert text_of(await client.call_tool("bills_vat", {})) == "mine"
        result = await client.call_tool("acme_vat", {"country": "DE", "net": 10})
        assert text_of(result) == "11.9"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acmee", "No installed package offers tools as `acmee`. Did you mean `acme`?"),
        ("broken", "`--package broken` failed:\n"),
        ("broken", "cannot be loaded: RuntimeError: no licence. `import broken` shows where."),
        ("../x", "--package takes the name of an entry point, such as acme, not '../x'."),
        ("x; print(1)", "--package takes the name of an entry point"),
    ],
)
def test_a_package_that_does_not_exist_ends_the_command_with_a_sentence(home, site, name, said):
    process = subprocess.Popen(
        list_words("serve", "--port", "0", "--package", name),
        cwd=site,
        env=kernel_env(home),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.wait(TIMEOUT) == 1
        told = process.stderr.read()
    assert said in told
    assert "Fix the cell" not in told


async def test_it_is_served_even_if_notebooks_have_to_be_trusted(home, site):
    arguments = ("--package", "acme", "--trusted-only", "--tools", "due")
    async with connected(home, "auto", "stdio", *arguments) as client:
        assert [tool.name for tool in await list_tools(client)] == ["due"]
