"""What `mcp-notebook call` asks on the terminal."""

import io

import pytest

from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.cli.call import ask_for_consent
from mcp_notebook.errors import ConsentDenied
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire.messages import ToolInfo

pytestmark = pytest.mark.anyio
ENTRY = CatalogEntry(
    "drop", "k", "sales", ToolInfo(name="drop", input_schema={}, revision="a1"), "sales_drop"
)
HARMLESS = CatalogEntry("look", "k", "sales", ToolInfo(name="look", input_schema={}), "sales_look")


class Terminal(io.StringIO):
    """A terminal on which something was typed."""

    def isatty(self):
        return True


@pytest.mark.parametrize("typed", ["y\n", " YES \n"])
async def test_a_call_goes_on_when_its_user_agrees(typed, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    await ask_for_consent(Settings(), ENTRY, {"year": 2012})
    out, err = capsys.readouterr()
    assert out == ""
    assert "Tool: drop" in err
    assert "    year = 2012" in err
    assert err.endswith("Run it? y/N: ")


@pytest.mark.parametrize("typed", ["\n", "n\n", "", "yesterday\n"])
async def test_anything_else_is_a_no(typed, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    with pytest.raises(ConsentDenied, match="You declined"):
        await ask_for_consent(Settings(), ENTRY, {})


async def test_without_a_terminal_no_question_is_asked_and_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(ConsentDenied, match=r"stdin is not a terminal\. Add `--yes`"):
        await ask_for_consent(Settings(), ENTRY, {})
    await ask_for_consent(Settings(), HARMLESS, {})
    with pytest.raises(ConsentDenied):
        await ask_for_consent(Settings(confirm_destructive=True), HARMLESS, {})
