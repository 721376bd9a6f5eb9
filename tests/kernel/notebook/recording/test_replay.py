"""`%mcp call FILE.ipynb`: a recording is shown, and its calls are made again."""

import json

import pytest
from hostile_texts import objects
from hypothesis import given
from live import Link, record_of

from mcp_notebook.errors import RecordingError
from mcp_notebook.kernel.notebook.recording.call_cells import KEY
from mcp_notebook.kernel.notebook.recording.replay import build_note, read_recording

NOTE = {"cell_type": "markdown", "metadata": {}, "source": ["# Why\n", "\n", "It **rains** `x`."]}


@pytest.fixture
def recording(rain, tmp_path):
    """A recording of four calls by a client, two of which are refused, with a note."""
    path = tmp_path / "a day.ipynb"
    rain.ok("%%mcp_tool\ndef login(password: __import__('mcp_notebook').Secret[str]): return 'in'")
    rain.ok(f'%mcp record "{path}"')
    with Link(record_of(rain)) as link:
        link.call("rain", city="Seattle", year=2015)
        link.call("rain", city="Paris")
        link.call("login", password="hunter2")
    rain.ok("%mcp record --stop")
    notebook = json.loads(path.read_text())
    notebook["cells"][0] = NOTE
    path.write_text(json.dumps(notebook))
    return path


def replay(kernel, path):
    return kernel.ok(f'%mcp call "{path}"')


@pytest.mark.smoke
def test_the_calls_of_a_recording_are_made_again_and_shown_with_its_notes(rain, recording):
    output = replay(rain, recording)
    assert output.stdout == "Seattle 2015\n"
    note, first, same, second, refused, third, secret = output.displays
    assert note["text/plain"] == "# Why\n\nIt **rains** `x`."
    assert "<b>Why</b>" in note["text/html"]
    assert "<b>rains</b> <code>x</code>" in note["text/html"]
    assert first["text/plain"].endswith("called rain(city='Seattle', year=2015)")
    assert "Called again now, with the same result as on 20" in same["text/plain"]
    assert "called rain(city='Paris')" in second["text/plain"]
    assert refused["text/plain"].startswith("Not called again: the tool did not run.")
    assert "allowed: 'Seattle' | 'New York'" in refused["text/plain"]
    assert "called login(" in third["text/plain"]
    assert "Not called again: some of its arguments were not recorded." in secret["text/plain"]
    assert "hunter2" not in output.text
    assert "3 calls" not in rain.ok("%mcp status").text.partition("this notebook")[2]


def test_a_result_that_has_changed_is_shown_beside_the_recorded_one(rain, recording):
    rain.ok("%%mcp_tool\ndef rain(city: str, year: int = 2012) -> str:\n    return 'dry'")
    output = replay(rain, recording)
    assert output.stdout == "dry\n"
    changed = output.displays[2]["text/plain"]
    assert changed.startswith("Called again now. On 20")
    assert changed.endswith("the result was:\nSeattle 2015")


def test_of_a_tool_that_is_gone_the_error_is_shown_and_the_other_calls_are_made(rain, recording):
    rain.ok("del rain")
    output = replay(rain, recording)
    assert "rain" in output.stdout
    assert len(output.displays) == 7


def test_an_interrupt_ends_the_whole_replay(rain, tmp_path):
    rain.ok(
        "%%mcp_tool\ndef slow() -> str:\n    'S.'\n    return str(wait())\nwait = lambda: 'quick'"
    )
    path = tmp_path / "calls.ipynb"
    rain.ok(f"%mcp record {path}")
    with Link(record_of(rain)) as link:
        link.call("slow")
        link.call("slow")
    rain.ok("%mcp record --stop")
    rain.ok(
        "import _thread\ndef wait():\n    _thread.interrupt_main()\n    __import__('time').sleep(9)"
    )
    shown = rain.run(f"%mcp call {path}").displays
    assert [data["text/plain"].rpartition(" ")[2] for data in shown[1:]] == ["slow()"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("no json", "is not a notebook"),
        ('{"cells": 1}', "is not a notebook"),
        ('{"cells": [1]}', "is not a notebook"),
        ("[" * 100_000, "is not a notebook"),
        ('{"cells": []}', "has no recorded calls"),
        (
            json.dumps(
                {"cells": [{"cell_type": "code", "metadata": {KEY: {"tool": 1, "arguments": {}}}}]}
            ),
            "has no recorded calls",
        ),
    ],
)
def test_another_file_is_refused_with_the_reason(tmp_path, content, said):
    path = tmp_path / "calls.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RecordingError, match=said):
        read_recording(path)


def test_a_word_that_is_neither_a_tool_nor_a_file_is_a_tool_that_is_not_there(rain):
    for line in ("rian", "rian city=a.ipynb"):
        output = rain.run(f"%mcp call {line}")
        assert "rian" in output.text
        assert "ipynb" not in output.stderr


def test_a_tool_whose_name_ends_like_a_files_is_called(rain):
    rain.ok("%%mcp_tool --name a-ipynb\ndef a() -> str: return 'called'")
    assert rain.ok("%mcp call a-ipynb").stdout == "called\n"


@pytest.mark.parametrize("text", ["<script>x</script>", "`<b>`", "# <i>", "**<u>**", "\x1b[31m<a>"])
def test_a_note_never_becomes_markup(text):
    html = build_note(text)["text/html"]
    for tag in ("<script", "<i>", "<u>", "<a>", "\x1b"):
        assert tag not in html
    assert "<b><" not in html.replace("<b>&lt;", "")


@given(objects())
def test_whatever_a_file_holds_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("files") / "calls.ipynb"
    cell = {"cell_type": "code", "metadata": {KEY: content}, "outputs": [content], "source": ""}
    path.write_text(json.dumps({"cells": [cell, NOTE | {"source": content}]}))
    with pytest.raises(RecordingError):
        read_recording(path)
