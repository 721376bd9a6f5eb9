"""``%mcp record`` in a live kernel, with calls of a client over the link."""

import json

import nbformat
import pytest
from hostile_texts import objects
from hypothesis import given
from live import Link, record_of, text_of, until
from recorded_cells import read_call_cells

from mcp_notebook.kernel.notebook.recording.recording import read_record_line
from mcp_notebook.text.redaction import MASK

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


@pytest.mark.smoke
def test_each_call_of_a_client_and_of_the_notebook_is_recorded_until_the_stop(rain, folder):
    assert f"a cell of {folder}/calls.ipynb" in rain.ok("%mcp record calls").stdout
    with Link(record_of(rain)) as link:
        assert text_of(link.call("rain", city="Seattle", year=2015)) == "Seattle 2015"
        assert link.call("rain", city="Paris").is_error
        rain.ok("%mcp call rain city=Seattle")
        status = rain.ok("%mcp status").text
        assert f"Recording calls to {folder}/calls.ipynb: 3 calls so far." in status
        stopped = rain.ok("%mcp record --stop").stdout
        assert stopped == f"Recorded 3 calls in {folder}/calls.ipynb.\n"
        link.call("rain", city="Seattle")
    good, wrong, own = calls_in(folder / "calls.ipynb")
    assert (good.state, wrong.state, own.client) == ("done", "failed", "this notebook")
    assert good.arguments == {"city": "Seattle", "year": 2015}
    (cell, *_) = read_call_cells(nbformat.read(folder / "calls.ipynb", as_version=4))
    assert cell.outputs[0].text == "Seattle 2015"


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
        ("a b", "takes one file, not 2: a, b. Put a name with spaces in quotes."),
        ("--stopp", "Did you mean `--stop`?"),
        ("-x", "no option `-x`. It has --append, --here, --stop."),
        ("--here 1 --stop", "takes only the number of a call"),
        ("--append", "Append to which file?"),
        ("--stop calls", "takes no other arguments"),
        ("'calls", "close the quote"),
        ("nowhere/calls", "cannot be written: No such file or directory"),
        ("taken", "already exists. Name another file"),
    ],
)
def test_a_line_that_cannot_be_followed_says_what_to_write(rain, folder, line, message):
    (folder / "taken.ipynb").write_text("mine")
    assert message in error_of(rain, f"%mcp record {line}")
    assert (folder / "taken.ipynb").read_text() == "mine"


def test_a_name_and_options_may_stand_in_any_order():
    assert read_record_line("") == (None, set())
    assert read_record_line("'my calls' --append") == ("my calls", {"--append"})
    assert read_record_line("--append calls --stop") == ("calls", {"--append", "--stop"})


def test_a_second_recording_is_refused_while_one_runs(rain, folder):
    rain.ok("%mcp record one")
    assert "Stop that first" in error_of(rain, "%mcp record two")
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


@pytest.mark.smoke
def test_a_call_is_inserted_as_a_cell_that_makes_it_again(rain, folder):
    with Link(record_of(rain)) as link:
        link.call("rain", city="New York", year=2013)
    code = insert(rain, "%mcp record --here")
    assert code == "rain(\n    city='New York',\n    year=2013,\n)"
    assert rain.ok(code).displays[0]["text/plain"] == "'New York 2013'"
    assert "The log has no call 999999. The last one is" in error_of(
        rain, "%mcp record --here 999999"
    )
    assert "The log has no call x." in error_of(rain, "%mcp record --here x")
    assert "The log has no call 99999" in error_of(rain, f"%mcp record --here {'9' * 5000}")


@pytest.fixture(scope="module")
def picky(shared_kernel):
    """A notebook whose tool `pick` takes anything down that it is given."""
    shared_kernel.ok("%reload_ext mcp_notebook")
    shared_kernel.ok(
        "from mcp_notebook import Tool, registry\nfired, got = [], []\n"
        "def pick(**arguments): got.append(repr(arguments))\n"
        "registry.add(Tool(name='pick', input_schema={'type': 'object'}, handler=pick))"
    )
    with Link(record_of(shared_kernel)) as link:
        yield shared_kernel, link


@given(arguments=objects())
def test_the_cell_of_a_call_makes_that_call_and_runs_nothing_else(picky, arguments):
    kernel, link = picky
    kernel.ok("del fired[:], got[:]")
    is_refused = link.call("pick", **arguments).is_error
    kernel.ok(insert(kernel, "%mcp record --here"))
    kernel.ok(f"%mcp call pick {json.dumps(arguments)}")
    checks = "print(fired, len(got), len(set(got[:2])))"
    assert kernel.ok(checks).stdout == ("[] 0 0\n" if is_refused else "[] 3 1\n")


REFUSED = [
    ("pick", {"c!": "+str(fired.append(1))#", "c": "a"}),
    ("pick", {"c": "{fired.append(1)}"}),
    ("fired.append", {"object": 1}),
    ("x\nfired.append(1)", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), REFUSED)
def test_what_was_refused_is_recorded_and_runs_nothing_when_the_cells_are_run_again(
    kernel, tmp_path, tool, arguments
):
    kernel.ok("fired = []")
    kernel.ok("%%mcp_tool\nfrom typing import Literal\ndef pick(c: Literal['a']): return c")
    kernel.ok(f"%mcp record {tmp_path}/calls")
    with Link(record_of(kernel)) as link:
        assert link.call(tool, **arguments).is_error
    inserted = insert(kernel, "%mcp record --here")
    kernel.ok("%mcp record --stop")
    (cell,) = nbformat.read(tmp_path / "calls.ipynb", as_version=4).cells[1:]
    assert cell.source.startswith("# The tool did not run.\n# ")
    assert cell.outputs[0].output_type == "error"
    kernel.ok(cell.source)
    kernel.run(inserted)
    kernel.run(f"%mcp call {tool} {json.dumps(arguments)}")
    assert kernel.ok("fired").displays[0]["text/plain"] == "[]"


def test_a_call_that_failed_in_its_function_runs_again_and_one_that_was_refused_does_not(
    kernel, tmp_path
):
    kernel.ok("%%mcp_tool\ndef ratio(a: int): return 1 / a")
    kernel.ok("%%mcp_tool --run fork --read-only\ndef apart(a: int): return 1 / a")
    kernel.ok(f"%mcp record {tmp_path}/calls")
    with Link(record_of(kernel)) as link:
        for tool in ("ratio", "apart"):
            for a in (0, "x"):
                assert link.call(tool, a=a).is_error
    # The client has its answer before the recording has the call.
    until(lambda: len(calls_in(tmp_path / "calls.ipynb")) == 4)
    kernel.ok("%mcp record --stop")
    calls = calls_in(tmp_path / "calls.ipynb")
    assert [call.never_ran for call in calls] == [False, True, False, True]


@pytest.mark.parametrize(
    "cell",
    [
        "%%mcp_tool --name total\ndef add(a: int): return a",
        "%%mcp_tool\nasync def total(a: int): return a",
        "%%mcp_tool\ndef total(a: int, /): return a",
        "%%mcp_tool\nfrom mcp_notebook import Context\ndef total(a: int, ctx: Context): return a",
    ],
)
def test_a_function_that_a_cell_cannot_call_like_a_client_is_called_by_the_magic(kernel, cell):
    kernel.ok(cell)
    with Link(record_of(kernel)) as link:
        assert text_of(link.call("total", a=5)) == "5"
    code = insert(kernel, "%mcp record --here")
    assert code == '%mcp call total {"a": 5}'
    assert kernel.ok(code).stdout == "5\n"
