"""``mcp-notebook replay``: a recording against the notebook as it is now."""

import json
import subprocess

import nbformat
import pytest
from forked_command import list_words
from live import Link, kernel_env, live_kernel, record_of

from mcp_notebook.cli.replay_command import Replay, replay_calls
from mcp_notebook.errors import NotebookError, RecordingError
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.anyio

CELL = '''%%mcp_tool
from mcp_notebook import Image, Secret
factor = 2
def scale(number: int) -> int:
    """Multiply."""
    return number * factor
def dot(size: int = 1) -> Image:
    """Draw."""
    import PIL.Image
    return Image(PIL.Image.new("L", (size, size), factor))
def login(password: Secret[str]) -> str:
    """Log in."""
    return "in"
def wrong() -> int:
    """Fail."""
    raise ValueError("on purpose")
'''


@pytest.fixture(scope="module")
def sales(module_home):
    """A live notebook, and a recording of its calls in `module_home`."""
    path = module_home / "sales.ipynb"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in ("%load_ext mcp_notebook", CELL)]
    )
    nbformat.write(notebook, path)
    with live_kernel(module_home, notebook=str(path)) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(CELL)
        kernel.ok("%mcp record calls")
        with Link(record_of(kernel)) as link:
            link.call("scale", number=21)
            link.call("dot")
            link.call("wrong")
            link.call("login", password="hunter2")
        kernel.ok("%mcp record --stop")
        yield kernel


@pytest.fixture
def settings(sales):
    sales.ok("factor = 2")
    return Settings(home=sales.home / ".mcp-notebook")


async def replay(settings, capsys, **options):
    file = settings.home.parent / "calls.ipynb"
    is_same = await replay_calls(settings, Replay(file=file, **options))
    said = capsys.readouterr()
    return is_same, said.out.splitlines(), said.err


@pytest.mark.smoke
async def test_each_call_is_made_again_and_compared(settings, capsys):
    is_same, lines, note = await replay(settings, capsys)
    assert lines[:3] == [
        "   1  same       scale(number=21)",
        "   2  same       dot()",
        "   3  same       wrong()",
    ]
    assert lines[3].startswith("   4  not made   login(password=")
    assert "password" in lines[4]
    assert note.strip() == "4 calls: 3 same, 1 not made."
    assert not is_same


async def test_what_differs_is_shown(settings, sales, capsys):
    sales.ok("factor = 3")
    is_same, lines, note = await replay(settings, capsys)
    assert not is_same
    assert lines[0] == "   1  different  scale(number=21)"
    assert {"      -42", "      +63"} <= set(lines)
    assert any("(image/png) is another one" in line for line in lines)
    assert "1 same, 1 not made" in note.replace("2 different, ", "")


async def test_what_a_recording_printed_when_it_was_run_again_in_jupyter_is_compared(
    settings, sales, tmp_path, capsys
):
    recording = nbformat.read(sales.home / "calls.ipynb", as_version=4)
    cell = next(cell for cell in recording.cells if cell.cell_type == "code")
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="something else")]
    nbformat.write(recording, tmp_path / "calls.ipynb")
    assert not await replay_calls(settings, Replay(file=tmp_path / "calls.ipynb"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "   1  different  scale(number=21)"
    assert {"      -something else", "      +42"} <= set(lines)


async def test_programs_get_one_object(settings, capsys):
    _, lines, _ = await replay(settings, capsys, as_json=True)
    first, *_ = json.loads("\n".join(lines))["calls"]
    assert first == {
        "number": 1,
        "tool": "scale",
        "arguments": {"number": 21},
        "outcome": "same",
        "details": [],
    }


async def test_the_same_text_in_another_number_of_outputs_is_a_difference(settings, sales, capsys):
    file = sales.home / "calls.ipynb"
    before = file.read_bytes()
    recording = nbformat.read(file, as_version=4)
    recording.cells[1].outputs.append(nbformat.v4.new_output("display_data", {"text/plain": ""}))
    nbformat.write(recording, file)
    try:
        _, lines, _ = await replay(settings, capsys)
    finally:
        file.write_bytes(before)
    assert lines[:2] == [
        "   1  different  scale(number=21)",
        "      It had 2 outputs, and now it has 1.",
    ]


async def test_a_tool_that_is_gone_is_said_and_the_others_go_on(settings, sales, capsys):
    sales.ok("%mcp remove scale")
    try:
        _, lines, _ = await replay(settings, capsys)
    finally:
        sales.ok(CELL)
    assert lines[0].startswith("   1  not made   scale")
    assert "removed with `%mcp remove`" in lines[1]
    assert any(line.startswith("   2  same") for line in lines)


async def test_a_file_that_is_no_recording_is_named(settings, sales):
    with pytest.raises(RecordingError, match=r"sales\.ipynb has no recorded calls"):
        await replay_calls(settings, Replay(file=sales.home / "sales.ipynb"))
    with pytest.raises(NotebookError, match="does not exist"):
        await replay_calls(settings, Replay(file=sales.home / "nothing.ipynb"))


@pytest.mark.slow
def test_the_command_runs_a_notebook_that_is_not_open_and_its_status_says_the_outcome(sales, home):
    recording = nbformat.read(sales.home / "calls.ipynb", as_version=4)
    recording.cells = recording.cells[:3]
    nbformat.write(recording, home / "calls.ipynb")
    copy = home / "sales.ipynb"
    copy.write_text((sales.home / "sales.ipynb").read_text())
    command = list_words("replay", "calls.ipynb", "--notebook", str(copy))
    done = subprocess.run(
        command, env=kernel_env(home), cwd=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "   1  same       scale(number=21)",
        "   2  same       dot()",
    ]
