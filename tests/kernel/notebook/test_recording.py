"""``%mcp record`` and ``%mcp insert`` in a live kernel, with calls of a client over the link."""

import nbformat
import pytest
from live import Link, record_of, text_of

from mcp_notebook.call_cells import read_call_cells
from mcp_notebook.redaction import MASK

LOGIN = '''%%mcp_tool
from mcp_notebook import Secret
def login(user: str, password: Secret[str]) -> str:
    """Log in."""
    return f"{user} is in"
'''


@pytest.fixture
def folder(rain):
    """A folder for recordings; the kernel works there."""
    path = rain.home / "recordings"
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        file.unlink()
    rain.ok(f"%cd -q {path}")
    yield path
    rain.ok("%mcp record --stop")


def calls_in(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [cell.call for cell in read_call_cells(notebook)]


def error_of(kernel, line):
    output = kernel.run(line)
    assert output.error is not None or output.stderr, output.text
    return output.text


def test_each_call_of_a_client_and_of_the_notebook_is_recorded_until_the_stop(rain, folder):
    assert f"a cell of {folder}/calls.ipynb" in rain.ok("%mcp record calls").stdout
    with Link(record_of(rain)) as link:
        assert text_of(link.call("rain", city="Seattle", year=2015)) == "Seattle 2015"
        assert link.call("rain", city="Paris").is_error
        rain.ok("%mcp call rain city=Seattle")
        status = rain.ok("%mcp status").stdout
        assert f"Recording calls to {folder}/calls.ipynb: 3 calls so far." in status
        stopped = rain.ok("%mcp record --stop").stdout
        assert stopped == f"Recorded 3 calls in {folder}/calls.ipynb.\n"
        link.call("rain", city="Seattle")
    good, wrong, own = calls_in(folder / "calls.ipynb")
    assert (good.state, wrong.state, own.client) == ("done", "failed", "this notebook")
    assert good.arguments == {"city": "Seattle", "year": 2015}
    (cell, *_) = read_call_cells(nbformat.read(folder / "calls.ipynb", as_version=4))
    assert cell.outputs[0]["data"]["text/plain"] == "Seattle 2015"


def test_secrets_are_not_in_the_file(rain, folder):
    rain.ok(LOGIN)
    rain.ok("%mcp record calls")
    with Link(record_of(rain)) as link:
        assert text_of(link.call("login", user="ann", password="hunter2")) == "ann is in"
    rain.ok("%mcp record --stop")
    (call,) = calls_in(folder / "calls.ipynb")
    assert call.arguments == {"user": "ann", "password": MASK}
    assert "hunter2" not in (folder / "calls.ipynb").read_text()


def test_without_a_name_the_recording_has_a_free_one_beside_the_notebook(rain, folder):
    for name in ("notebook-calls.ipynb", "notebook-calls-2.ipynb"):
        assert name in rain.ok("%mcp record").stdout
        rain.ok("%mcp record --stop")
        assert calls_in(folder / name) == []


def test_a_recording_goes_on_when_the_extension_is_reloaded_and_ends_with_it(rain, folder):
    rain.ok("%mcp record calls")
    rain.ok("%reload_ext mcp_notebook")
    rain.ok("%mcp call rain city=Seattle")
    rain.ok("%unload_ext mcp_notebook")
    assert len(calls_in(folder / "calls.ipynb")) == 1
    rain.ok("%load_ext mcp_notebook")
    assert "No calls are being recorded." in rain.ok("%mcp record --stop").stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b", "takes one file, not 2"),
        ("--stopp", "Did you mean `--stop`?"),
        ("--append", "Append to which file?"),
        ("--stop calls", "takes nothing else"),
        ("'calls", "close the quote"),
        ("nowhere/calls", "cannot be written: No such file or directory"),
        ("taken", "is there already. Name another file"),
    ],
)
def test_a_line_that_cannot_be_followed_says_what_to_write(rain, folder, line, message):
    (folder / "taken.ipynb").write_text("mine")
    assert message in error_of(rain, f"%mcp record {line}")
    assert (folder / "taken.ipynb").read_text() == "mine"


def test_a_second_recording_is_refused_while_one_runs(rain, folder):
    rain.ok("%mcp record one")
    assert "End that first" in error_of(rain, "%mcp record two")
    assert "0 calls so far" in rain.ok("%mcp record").stdout


def insert(kernel, line):
    """Return the code of the cell that a frontend would insert."""
    request = kernel.client.execute(line)
    reply = kernel.client.get_shell_msg(timeout=60)
    while reply["parent_header"].get("msg_id") != request:
        reply = kernel.client.get_shell_msg(timeout=60)
    (payload,) = reply["content"]["payload"]
    assert (payload["source"], payload["replace"]) == ("set_next_input", False)
    return payload["text"]


def test_a_call_is_inserted_as_a_cell_that_makes_it_again(rain, folder):
    with Link(record_of(rain)) as link:
        link.call("rain", city="New York", year=2013)
    code = insert(rain, "%mcp insert")
    assert code == "rain(city='New York', year=2013)"
    assert rain.ok(code).displays[0]["text/plain"] == "'New York 2013'"
    assert "The log has no call 999999. The last one is" in error_of(rain, "%mcp insert 999999")
    assert "The log has no call x." in error_of(rain, "%mcp insert x")
    assert "The log has no call 99999" in error_of(rain, f"%mcp insert {'9' * 5000}")
