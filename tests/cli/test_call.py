import io
import json
import re
from pathlib import Path

import pytest
from live import Link, kernel_env, live_kernel, record_of
from msgspec import structs
from notebook_files import write_notebook

import mcp_notebook
from mcp_notebook._version import __version__
from mcp_notebook.cli import call as shell
from mcp_notebook.cli.call import ToolCall, call_tool
from mcp_notebook.cli.list import list_tools
from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, list_live_records, write_record
from mcp_notebook.errors import (
    AmbiguousTool,
    ConsentDenied,
    InvalidArguments,
    NotebookError,
    UnknownTool,
)
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

CELLS = [
    "%load_ext mcp_notebook",
    '''%%mcp_tool
from typing import Any, Literal
from pydantic import BaseModel
class Place(BaseModel):
    city: str
def echo(text: str = "", number: int | None = None, flag: bool = False,
         either: int | str | None = None, items: list[int] = [], place: Place | None = None,
         choice: Literal[1, "one"] = 1, anything: Any = None) -> str:
    """Say what came.

    And more.
    """
    return repr((text, number, flag, either, items, place, choice, anything))
def fail() -> str:
    "Fail."
    raise ValueError("on purpose")
''',
    """import io, PIL.Image
def encoded(kind):
    PIL.Image.new("RGB", (2, 2)).save(data := io.BytesIO(), kind)
    return data.getvalue()
""",
    """%%mcp_tool
from mcp_notebook import Audio, Image, Resource, ResourceLink, Text
def media() -> list:
    "Pictures and more."
    png, jpeg = (encoded(kind) for kind in ("PNG", "JPEG"))
    return [Text("see:"), Image(png), Image(jpeg, "image/jpeg"), Audio(b"RIFF....WAVE"),
            Resource("file:///a.bin", b"bytes", "application/x-unknown"),
            Resource("file:///a.txt", "a document"), ResourceLink("http://x/", "a link")]
""",
    """%%mcp_tool
def numbers() -> dict:
    "Numbers."
    return {"a": 1}
""",
    """%%mcp_tool --confirm
def careful() -> str:
    "Ask first."
    return "done"
""",
]


KEPT = """%%mcp_tool
from mcp_notebook import Result
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
def kept(expires: bool = False) -> Result:
    "A part, with what leads to the whole."
    store = get_ipython()._mcp_notebook.resources
    csv = FileFormat(".csv", "text/csv", lambda: "a,b", 3)
    binary = FileFormat(".bin", "x/y", lambda: b"bytes")
    links = store.keep(Original("table", "The whole table", (csv, binary), 1))
    if expires:
        store.clear()
    return Result([Text("a part"), *links])
"""


@pytest.fixture(scope="module")
def sales(module_home):
    """A live notebook with tools."""
    path = module_home / "sales.ipynb"
    path.touch()
    with live_kernel(module_home, notebook=str(path)) as kernel:
        for cell in CELLS:
            kernel.ok(cell)
        yield kernel


@pytest.fixture
def settings(sales):
    return Settings(home=sales.home / ".mcp-notebook")


async def _echo(settings, capsys, *texts, **arguments):
    """Return what `echo` got: text, number, flag, either, items, place, choice, anything."""
    call = ToolCall(tool="echo", texts=texts, arguments=arguments)
    assert await call_tool(settings, call)
    return capsys.readouterr().out.strip()


async def test_a_tool_that_wants_to_be_confirmed_is_not_run_unasked(settings, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y"))
    with pytest.raises(ConsentDenied, match="stdin is not a terminal"):
        await call_tool(settings, ToolCall(tool="careful"))
    assert await call_tool(settings, ToolCall(tool="careful", is_confirmed=True))
    assert capsys.readouterr().out == "done\n"


# -- list ------------------------------------------------------------------------------------------


async def test_tools_are_listed_as_lines_with_tabs_when_piped(settings, capsys):
    await list_tools(settings, None)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["echo", "fail", "media", "numbers", "careful"]
    name, notebook, parameters, description = rows[0]
    assert (name, notebook, description) == ("echo", "sales", "Say what came.")
    assert parameters.startswith('text="", number=null, flag=false')


async def test_all_of_the_list_is_one_object_as_json(settings, sales, capsys):
    sales.ok("%%mcp_tool\ndef call_notebook_tool() -> int:\n    'Count: ö.'\n    return 1")
    try:
        await list_tools(settings, None, as_json=True)
    finally:
        sales.ok("del call_notebook_tool")
    said = capsys.readouterr()
    assert said.err == ""
    answer = json.loads(said.out)
    *_, tool = answer["tools"]
    assert tool == {
        "name": "call_notebook_tool",
        "kind": "tool",
        "notebook": "sales",
        "title": None,
        "description": "Count: ö.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "outputSchema": tool["outputSchema"],
        "annotations": None,
    }
    (missing,) = answer["missing"]
    assert missing["listedAs"] == "sales_call_notebook_tool"
    assert missing["reason"].startswith("A bridge that runs with --meta-tools")
    assert answer["calls"] == []


async def test_a_prompt_is_listed_as_one_and_called_like_a_tool(settings, sales, capsys):
    sales.ok("%%mcp_prompt report(year: int)\n# Report\nOn {year}.")
    try:
        await list_tools(settings, None)
        assert "report\tsales\tyear\t[prompt] Report\n" in capsys.readouterr().out
        await call_tool(settings, ToolCall(tool="report", arguments={"year": 2026}))
        assert capsys.readouterr().out == "# Report\nOn 2026.\n"
    finally:
        sales.ok("del report")


async def test_a_live_notebook_is_found_by_its_file(settings, sales, capsys, monkeypatch):
    monkeypatch.chdir(sales.home)
    await list_tools(settings, Path("sales.ipynb"))
    said = capsys.readouterr()
    assert "echo\tsales" in said.out
    assert "cells have run" not in said.err


async def test_the_notebooks_log_says_that_a_call_is_from_the_command_line(settings, sales):
    await call_tool(settings, ToolCall(tool="echo"))
    log = sales.ok("%mcp log -n 1").displays[0]["text/plain"]
    assert f"mcp-notebook call {__version__}  echo(" in log


async def test_the_calls_that_run_and_wait_are_listed_with_what_they_do(settings, sales, capsys):
    sales.ok("import threading; go = threading.Event()")
    sales.ok("%%mcp_tool --run thread\ndef hold():\n    'Hold.'\n    go.wait(60)")
    with Link(record_of(sales)) as link:
        link.start("hold")
        said = ""
        while not re.search(r"sales:\d+: call to hold: running for 0 s", said):
            await list_tools(settings, None)
            said = capsys.readouterr().err
        sales.ok("go.set()")
        link.result()
    sales.ok("del hold")


async def test_without_a_live_notebook_the_list_is_empty_and_says_what_to_do(home, capsys):
    await list_tools(Settings(home=home), None)
    said = capsys.readouterr()
    assert said.out == ""
    assert "%load_ext mcp_notebook" in said.err
    assert "--notebook" in said.err


async def test_a_kernel_that_cannot_be_linked_hides_no_other(settings, capsys):
    (live,) = list_live_records(settings.records_folder)
    stuck: Record = structs.replace(
        live, id=make_id(), name="stuck", socket=str(settings.home / "none.sock")
    )
    path = write_record(settings.records_folder, stuck)
    try:
        await list_tools(settings, None)
    finally:
        path.unlink()
    said = capsys.readouterr()
    assert "echo\tsales" in said.out
    assert "'stuck' cannot be reached" in said.err


# -- call: arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("text=2012", "('2012', None,"),
        ('text="quoted"', "('\"quoted\"', None,"),
        ("text=", "('', None,"),
        ("text=a=b", "('a=b', None,"),
        ("number=5", "('', 5,"),
        ("number=null", "('', None,"),
        ("flag=true", "None, True,"),
        ("either=5", "False, 5,"),
        ("either=five", "False, 'five',"),
        ("either=[5]", "False, '[5]',"),
        ("items=[1, 2]", "None, [1, 2],"),
        ('place={"city": "Rome"}', "Place(city='Rome')"),
        ("choice=1", ", 1, None)"),
        ("choice=one", ", 'one', None)"),
        ("anything=[true]", ", [True])"),
        ("anything=words", ", 'words')"),
    ],
)
async def test_a_text_means_what_the_schema_allows(settings, capsys, text, got):
    name, _, value = text.partition("=")
    assert got in await _echo(settings, capsys, (name, value))


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (messages.Progress(id=1, progress=1.001, message="waiting"), "waiting"),
        (messages.Progress(id=1, progress=3, total=10, message="days"), "3 of 10 days"),
        (messages.Progress(id=1, progress=3), "3"),
    ],
)
async def test_progress_is_shown_without_a_number_that_says_nothing(progress, shown, capsys):
    await shell._print_progress(progress)
    assert capsys.readouterr().err == f"{shown}\n"


async def test_an_argument_given_twice_is_refused(settings):
    call = ToolCall(tool="echo", texts=[("items", "1"), ("items", "2")])
    with pytest.raises(InvalidArguments, match="'items' was given twice"):
        await call_tool(settings, call)


# -- call: answers ---------------------------------------------------------------------------------


async def test_a_tool_that_fails_is_answered_on_stderr(settings, capsys):
    assert not await call_tool(settings, ToolCall(tool="fail"))
    said = capsys.readouterr()
    assert said.out == ""
    assert "on purpose" in said.err


async def test_pictures_are_mentioned_when_they_are_not_saved(settings, capsys):
    assert await call_tool(settings, ToolCall(tool="media"))
    said = capsys.readouterr()
    assert said.out.splitlines() == ["see:", "a document", "a link: http://x/"]
    assert re.search(r"image \(image/png, \d+ bytes\) not saved; .* --save DIR", said.err)
    assert "audio (audio/wav, 12 bytes) not saved" in said.err


async def test_pictures_are_saved_and_overwrite_nothing(settings, capsys, tmp_path):
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        assert await call_tool(settings, ToolCall(tool="media", save=folder))
    names = {path.name for path in folder.iterdir()}
    kinds = ("png", "jpg", "wav", "bin")
    assert names == {f"media-{number}.{kind}" for number in (1, 2) for kind in kinds}
    assert (folder / "media-2.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "media-2.jpg").read_bytes().startswith(b"\xff\xd8")
    assert (folder / "media-2.wav").read_bytes() == b"RIFF....WAVE"
    assert f"saved as {folder / 'media-2.png'}" in capsys.readouterr().err


async def test_originals_behind_links_are_printed_and_saved(settings, sales, capsys, tmp_path):
    sales.ok(KEPT)
    try:
        assert await call_tool(settings, ToolCall(tool="kept", save=tmp_path))
        printed = capsys.readouterr().out.splitlines()
        assert printed[0] == "a part"
        assert printed[1].startswith("The whole table (text/csv, 3 bytes): notebook://")
        assert printed[2].startswith("The whole table (x/y): notebook://")
        assert (tmp_path / "kept-1.csv").read_text() == "a,b"
        assert (tmp_path / "kept-1.bin").read_bytes() == b"bytes"
        expired = ToolCall(tool="kept", arguments={"expires": True}, save=tmp_path)
        assert await call_tool(settings, expired)
        assert capsys.readouterr().err.count("it has expired") == 2
    finally:
        sales.ok("del kept")


async def test_a_folder_that_cannot_be_written_is_named(settings, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotebookError, match="--save"):
        await call_tool(settings, ToolCall(tool="media", save=tmp_path / "file"))


async def test_a_structured_result_is_printed_as_json(settings, capsys):
    assert await call_tool(settings, ToolCall(tool="numbers"))
    assert json.loads(capsys.readouterr().out) == {"a": 1}


async def test_an_unknown_tool_is_told_with_those_that_exist(settings):
    with pytest.raises(UnknownTool, match="The tools are: echo,"):
        await call_tool(settings, ToolCall(tool="ecko"))


async def test_a_call_without_a_live_notebook_says_what_to_do(home):
    with pytest.raises(NotebookError, match=r"--notebook FILE\.ipynb"):
        await call_tool(Settings(home=home), ToolCall(tool="echo"))


async def test_a_name_that_two_notebooks_have_is_told_with_both(settings, sales):
    home = sales.home
    with live_kernel(home, notebook=str(home / "costs.ipynb")) as other:
        other.ok("%load_ext mcp_notebook")
        other.ok('%%mcp_tool\ndef echo():\n    "Another."')
        with pytest.raises(AmbiguousTool, match=r"'sales_echo' or 'costs_echo'"):
            await call_tool(settings, ToolCall(tool="echo"))


# -- notebooks that are not open -------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.usefixtures("forked_kernels")
async def test_a_notebook_that_is_not_open_is_run_for_the_one_call(home, capsys, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    notebooks = Path(__file__).parents[2] / "notebooks"
    settings = Settings(home=home / "state")
    call = ToolCall(
        tool="monthly_rain", texts=[("year", "2015")], notebook=notebooks / "weather.ipynb"
    )
    assert await call_tool(settings, call)
    said = capsys.readouterr()
    assert "December" in said.out
    before, cell, _ = said.err.partition("weather.ipynb: cell 1 of ")
    assert cell
    first, *others = before.splitlines()
    assert first == f"{call.notebook} is not open, so all its cells are run for this command."
    # It came with the package, unless that is installed elsewhere and these are its tests.
    is_own = Path(mcp_notebook.__file__).parents[1] == Path(__file__).parents[2]
    assert any("is not trusted" in line for line in others) is not is_own
    assert list_live_records(settings.records_folder) == ()


async def test_a_notebook_that_does_not_exist_is_not_said_to_be_run(home, capsys):
    with pytest.raises(NotebookError, match="does not exist"):
        await list_tools(Settings(home=home / "state"), home / "nope.ipynb")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("forked_kernels")
async def test_a_notebook_that_is_run_leaves_its_schemas_for_the_next_start(home):
    path = home / "sums.ipynb"
    tool = '%%mcp_tool\ndef add(a: int, b: int = 2):\n    "Add."\n    return a + b'
    write_notebook(path, "%load_ext mcp_notebook", tool)
    settings = Settings(home=home / ".mcp-notebook")
    await list_tools(settings, path)
    (schema,) = settings.schemas_folder.iterdir()
    built = schema.stat().st_ino
    await list_tools(settings, path)
    assert [file.stat().st_ino for file in settings.schemas_folder.iterdir()] == [built]
