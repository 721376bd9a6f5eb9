"""``%mcp record`` in a live kernel: a call of a client becomes a cell."""

import json

import pytest
from hostile_texts import objects
from hypothesis import given
from live import Link, record_of


def error_of(kernel, line):
    output = kernel.run(line)
    assert output.error is not None or output.stderr, output.text
    return output.text


@pytest.mark.smoke
def test_a_call_is_inserted_as_a_cell_that_makes_it_again(rain):
    with Link(record_of(rain)) as link:
        link.call("rain", city="New York", year=2013)
    code = rain.insert("%mcp record")
    assert code == '%mcp call rain {"city": "New York", "year": 2013}'
    assert rain.ok(code).stdout == "New York 2013\n"
    assert "The log has no call 999999. The last one is" in error_of(rain, "%mcp record 999999")
    for word in ("x", "9" * 5000):
        assert "Write its number" in error_of(rain, f"%mcp record {word}")


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
    kernel.ok(kernel.insert("%mcp record"))
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
def test_what_was_refused_runs_nothing_when_its_cell_is_run(kernel, tool, arguments):
    kernel.ok("fired = []")
    kernel.ok("%%mcp_tool\nfrom typing import Literal\ndef pick(c: Literal['a']): return c")
    with Link(record_of(kernel)) as link:
        assert link.call(tool, **arguments).is_error
    kernel.run(kernel.insert("%mcp record"))
    kernel.run(f"%mcp call {tool} {json.dumps(arguments)}")
    assert kernel.ok("fired").displays[0]["text/plain"] == "[]"
