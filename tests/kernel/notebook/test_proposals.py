"""Cells that clients propose, in a real kernel, with the messages of a bridge and of a page."""

import hashlib
import json
import sys
from random import Random

import pytest
from live import Link, record_of, text_of, tools_of
from notebook_page import OPEN, Page

from mcp_notebook.content import Image, Result
from mcp_notebook.wire import messages

LIMITS = "get_ipython()._mcp_notebook.proposing.queue.limits"
TOOL = '''%%mcp_tool
def rain(city: str) -> str:
    """Rain of a city.

    Args:
        city: Where.
    """
    return f"{city}: 10 mm"
'''


@pytest.fixture
def page(kernel):
    """A page of a notebook in which clients may propose."""
    page = Page(kernel)
    assert "Nothing is inserted" in page.ask(messages.SwitchProposals, on=True).message
    yield page
    page.link.socket.close()


@pytest.fixture
def client(kernel, page):
    with Link(record_of(kernel)) as link:
        yield link


def propose(client, source="n = 6 * 7\nprint(n)", *, program="editor", guest="", **arguments):
    """Propose a cell, and return the call's id."""
    number = next(client.ids)
    call = messages.Call(
        id=number,
        tool="propose_cell",
        arguments={"source": source, "reason": "To have n.", **arguments},
        client=messages.ClientInfo(program, "1.2"),
        guest=guest,
    )
    client.send(call)
    return number


def offered(kernel):
    """Return all that a kernel offers to bridges, by name."""
    with Link(record_of(kernel)) as link:
        return {tool.name: tool for tool in link.welcome.tools}


def refused(client, *args, **kwargs):
    """Propose a cell about which nobody is asked, and return what the client is told."""
    propose(client, *args, **kwargs)
    result = client.result()
    assert result.is_error
    return text_of(result)


# -- the switch ------------------------------------------------------------------------------------


def test_clients_may_propose_only_while_the_switch_is_on(kernel):
    assert tools_of(kernel) == {}
    assert "Clients cannot propose" in kernel.ok("%mcp propose").stdout
    assert "the sources of this notebook's cells" in kernel.ok("%mcp propose on").stdout
    tools = offered(kernel)
    assert [*tools] == ["propose_cell", "propose/cells", "inspect/variable"]
    assert all(tool.proposes for tool in tools.values())
    assert tools["propose_cell"].annotations["readOnlyHint"] is False
    kernel.ok("%reload_ext mcp_notebook")
    assert "propose_cell" in tools_of(kernel)
    kernel.ok("%mcp propose off")
    assert tools_of(kernel) == {}
    with Link(record_of(kernel)) as client:
        assert "Unknown tool: 'propose_cell'" in refused(client)


def test_a_tool_of_the_author_keeps_the_name(kernel):
    kernel.ok('%%mcp_tool\ndef propose_cell(x: int) -> int:\n    "Mine."\n    return x')
    assert "rename your own tool `propose_cell`" in kernel.ok("%mcp propose on").stdout
    (tool,) = tools_of(kernel).values()
    assert not tool.proposes


def test_switching_off_answers_those_who_wait(client, page):
    propose(client)
    page.find()
    page.ask(messages.SwitchProposals, on=False)
    assert "does not let clients propose" in text_of(client.result())


def test_a_call_that_comes_while_clients_are_switched_off_leaves_no_proposal(client, page):
    page.kernel.ok("get_ipython()._mcp_notebook.proposing.is_on = False")  # its first step
    assert "does not let clients propose" in refused(client)
    assert "Clients cannot propose" in page.kernel.ok("%mcp propose").stdout
    assert not page.state[OPEN]


# -- a person's decisions --------------------------------------------------------------------------


def test_accept_and_run_gives_the_outputs_that_the_person_saw(client, page):
    propose(client)
    proposal = page.find()
    assert proposal.source == "n = 6 * 7\nprint(n)"
    assert proposal.digest == hashlib.sha256(proposal.source.encode()).hexdigest()
    assert (proposal.client, proposal.reason) == ("editor 1.2", "To have n.")
    page.accept(proposal)
    result = client.result()
    assert not result.is_error
    assert "accepted your cell as it is" in text_of(result)
    assert text_of(result).endswith("42")
    page.wait(lambda state: state["accepted"] and not state[OPEN])
    assert page.kernel.ok("n").text.strip() == "42"


def test_pictures_of_an_accepted_cell_are_blocks_and_errors_are_told(client, page):
    picture = (
        "from IPython.display import display\n"
        "from PIL.Image import new\n"
        "display(new('RGB', (20, 20), 'red'))"
    )
    propose(client, picture)
    page.accept(page.find())
    assert any(isinstance(block, Image) for block in client.result().content)
    propose(client, "1 / 0")
    page.accept(page.find(), cell="other")
    assert "ZeroDivisionError: division by zero" in text_of(client.result())


def test_an_edited_cell_is_answered_with_its_final_source(client, page):
    propose(client)
    page.accept(page.find(), source="n = 1", run=False)
    text = text_of(client.result())
    assert "with changes" in text
    assert "The user has not run it." in text
    assert "n = 1" in text


def test_a_rejection_has_the_word(client, page):
    propose(client)
    page.reject(page.find(), "n is a bad name")
    result = client.result()
    assert result.is_error
    assert text_of(result) == "The user has rejected it. She said: n is a bad name"


def test_a_proposed_tool_is_listed_before_the_answer(client, page):
    propose(client, TOOL, kind="tool")
    page.accept(page.find())
    received = client.receive_until(lambda message: isinstance(message, Result))
    assert "The tool `rain` is listed now." in text_of(received[-1])
    lists = [message for message in received if isinstance(message, messages.Tools)]
    assert "rain" in {tool.name for tool in lists[-1].tools}


def test_a_replacement_has_the_source_as_it_ran(client, page):
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    proposal = page.find()
    assert (proposal.replaces, proposal.tool, proposal.base) == ("a", "rain", TOOL)
    page.accept(proposal, cell="a")
    assert not client.result().is_error
    assert text_of(client.call("rain", city="Rome")) == "Rome: 20 mm"


def test_a_replacement_that_has_not_run_lists_nothing(client, page):
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    page.accept(page.find(), cell="a", run=False)
    text = text_of(client.result())
    assert "The user has not run it." in text
    assert "is listed now" not in text


def test_a_cell_stands_below_the_tool_or_the_cell_that_its_client_names(client, page):
    page.kernel.ok(TOOL, cell="a")
    page.kernel.ok("1", cell="b")
    for after, place in (("rain", "a"), ("b", "b")):
        propose(client, after=after)
        proposal = page.find()
        assert proposal.after == place
        page.reject(proposal)
        client.result()
    assert "no cell of the id" in refused(client, after="c")
    assert "Did you mean 'rain'" in refused(client, TOOL, kind="tool", replaces="rian")


# -- places that change, pages that vanish ---------------------------------------------------------


def test_one_of_two_pages_gets_a_proposal(client, page):
    other = Page(page.kernel)
    propose(client)
    proposal = page.find()
    assert not page.take(proposal).is_error
    assert "another page" in other.take(proposal).message
    assert other.reject(proposal).is_error
    other.wait(lambda state: state[OPEN] and state[OPEN][0].state == "taken")
    settle = {"number": proposal.number, "cell": "x"}
    assert not page.ask(messages.SettleProposal, outcome="inserted", **settle).is_error
    assert other.ask(messages.SettleProposal, outcome="inserted", **settle).is_error
    page.ask(messages.SettleProposal, outcome="ran", outputs=[], **settle)
    assert "accepted" in text_of(client.result())
    other.link.socket.close()


def test_a_stale_proposal_is_open_again_and_says_what_changed(client, page):
    propose(client)
    proposal = page.find()
    page.take(proposal)
    why = "The cell below which it would stand was deleted."
    page.ask(messages.SettleProposal, number=proposal.number, outcome="stale", message=why)
    page.wait(lambda state: why in state[OPEN][0].warnings)
    assert page.state[OPEN][0].state == "open"
    page.reject(proposal)
    assert why in text_of(client.result())


def test_what_a_page_has_not_inserted_is_not_the_final_source(client, page):
    propose(client)
    proposal = page.find()
    page.take(proposal, source="n = 0")
    page.ask(messages.SettleProposal, number=proposal.number, outcome="stale")
    page.kernel.ok("%mcp propose accept 1")
    text = text_of(client.result())
    assert "accepted your cell as it is" in text
    assert "n = 0" not in text


def test_a_tool_that_has_changed_since_is_compared_again(client, page):
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    proposal = page.find()
    page.kernel.ok(TOOL, cell="a")  # as it was
    page.kernel.ok(TOOL.replace("10", "15"), cell="a")
    assert "The tool `rain` has changed since" in page.take(proposal).message
    page.wait(lambda state: state[OPEN][0].base == TOOL.replace("10", "15"))
    assert "Note: The tool `rain` has changed" in page.kernel.ok("%mcp propose").stdout
    page.kernel.ok("del rain")
    assert "The tool or the cell that this is for is gone" in page.take(proposal).message
    page.wait(lambda state: state[OPEN][0].replaces is None)
    assert not page.take(proposal).is_error


def test_a_deleted_cell_is_no_place(client, page):
    page.kernel.ok("1", cell="b")
    propose(client, after="b")
    proposal = page.find()
    page.kernel.ok("2", cell="c", deleted=["b"])
    assert "is gone" in page.take(proposal).message
    page.wait(lambda state: state[OPEN][0].after is None)


def test_a_cell_that_loaded_us_is_a_place_before_the_notebook_is_saved(kernel):
    source = """%reload_ext mcp_notebook
from mcp_notebook import mcp_tool

@mcp_tool
def one() -> int:
    "The number one."
    return 1
"""
    kernel.ok(source, cell="a")
    page = Page(kernel)
    page.ask(messages.SwitchProposals, on=True)
    with Link(record_of(kernel)) as client:
        propose(client, after="one")
        proposal = page.find()
        assert proposal.after == "a"
        assert not page.take(proposal).is_error
        propose(client, "n = 2", after="one")
        proposal = page.find(2)
        kernel.ok("2", cell="b", deleted=["a"])
        assert "is gone" in page.take(proposal).message
    page.link.socket.close()


def test_only_what_the_person_saw_can_be_taken(client, page):
    propose(client)
    proposal = page.find()
    fields = {"number": proposal.number, "digest": "0" * 64, "run": True}
    assert "not the one that you saw" in page.ask(messages.TakeProposal, **fields).message
    page.reject(proposal)
    client.result()
    assert "not open any more" in page.take(proposal).message


def test_a_page_that_inserts_nothing_loses_its_claim(client, page):
    page.kernel.ok(LIMITS + "['taken'] = 0.2, 'The page has not inserted it.'")
    propose(client)
    page.take(page.find())
    page.wait(lambda state: state[OPEN][0].warnings == ["The page has not inserted it."])
    assert page.state[OPEN][0].state == "open"


def test_a_cell_that_ran_is_answered_even_if_the_page_says_nothing_more(client, page):
    page.kernel.ok(LIMITS + "['ran'] = 0.2, 'Its outputs were not reported.'")
    propose(client)
    proposal = page.find()
    page.take(proposal)
    settle = {"number": proposal.number, "cell": "new", "outcome": "inserted"}
    page.ask(messages.SettleProposal, **settle)
    page.kernel.ok(proposal.source, cell="new")
    assert "outputs were not reported" in text_of(client.result())


def test_nobody_has_answered_in_time(client, page):
    page.kernel.ok(LIMITS + "['open'] = 0.2, 'Nobody has decided.'")
    propose(client)
    assert "Nobody has decided" in text_of(client.result())


def test_a_proposal_that_is_followed_as_a_task_stays_open(client, page):
    page.kernel.ok(LIMITS + "['open'] = 0.0, 'Nobody has decided.'")
    cell = {"source": "n = 1", "reason": "To have n."}
    client.send(messages.Call(id=1, tool="propose_cell", arguments=cell, task_owner="ann"))
    states = client.receive_until(lambda message: isinstance(message, messages.TaskState))
    proposal = page.find()
    assert proposal.ends == 0.0
    page.accept(proposal)
    client.result()  # without what the task holds
    client.send(messages.AskTask(id=2, task=states[-1].task.id, owner="ann"))
    ended = client.receive_until(lambda message: isinstance(message, messages.TaskState))[-1]
    assert ended.task.status == "completed"
    assert "accepted your cell" in ended.result.content[0]["text"]


def test_a_cancelled_call_withdraws_its_proposal(client, page):
    number = propose(client)
    page.find()
    client.send(messages.Cancel(id=number))
    assert client.result().is_error
    page.wait(lambda state: not state[OPEN])


def test_a_restart_answers_the_client(client, page):
    propose(client)
    page.find()
    page.kernel.ok("%unload_ext mcp_notebook")
    last = client.receive_until(lambda message: isinstance(message, messages.Goodbye))[-1]
    assert "unloaded" in last.reason


def test_a_busy_kernel_shows_and_answers_proposals(client, page):
    with page.kernel.busy():
        propose(client)
        page.reject(page.find(), "not now")
        assert "not now" in text_of(client.result())
        propose(client)
        assert "A cell is running" not in page.take(page.find()).message


# -- the queue -------------------------------------------------------------------------------------


def test_five_proposals_of_a_caller_may_wait_whatever_it_calls_itself(client, page):
    for number in range(5):
        propose(client, program=f"name {number}", guest="ann")
        page.find(number + 1)
    assert "5 proposals of yours wait" in refused(client, program="other", guest="ann")
    propose(client, guest="bob")
    page.find(6)
    assert "5 proposals of yours wait" in refused(client, guest="ann")


def test_each_program_of_the_user_has_five_proposals(client, page):
    for number in range(5):
        propose(client)
        page.find(number + 1)
    assert "5 proposals of yours wait" in refused(client)
    propose(client, program="other")
    page.find(6)


def test_a_second_proposal_for_a_place_replaces_the_first_of_the_client(client, page):
    page.kernel.ok("1", cell="b")
    propose(client, after="b")
    first = page.find()
    propose(client, "n = 2", after="b", program="other")
    page.find(2)
    propose(client, "n = 3", after="b")
    assert "newer one" in text_of(client.result())
    page.wait(lambda state: [each.source for each in state[OPEN]] == ["n = 2", "n = 3"])
    assert first.number not in {each.number for each in page.state[OPEN]}


# -- before a person is asked ----------------------------------------------------------------------


# Since 3.15, Python says it itself.
TOO_DEEP = "too complex to parse" if sys.version_info >= (3, 15) else "nested too deeply"


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ("def f(:", "code", "not the code of a cell: invalid syntax (line 1)"),
        ("  ", "markdown", "must not be empty"),
        ("x" * 20_001, "markdown", "at most 20,000 characters"),
        ("x\n" * 1_000, "code", "1,000 of them line breaks or unseen"),
        ("#" + "\u200b\u200c" * 500, "code", "1,000 of them line breaks or unseen"),
        ("(" * 5_000, "code", "not the code of a cell"),
        ("x = 1", "tool", "declares no tool"),
        ("%%mcp_tool\ndef f(x: int): return x", "tool", "`f`: The tool has no description"),
        ("%%mcp_tool\ndef f(x: int): return x", "code", "`f`: The tool has no description"),
        ("%%mcp_tool f(x: int)\n# What it is.\nx", "tool", "parameter has no description: `x`"),
        ("%%mcp_tool --nmae g\ndef f(): 'F.'", "tool", "--nmae"),
        (f"%%mcp_tool f(x={'-' * 9_000}1)", "tool", TOO_DEEP),
        ("@mcp_tool\ndef f(y: str):\n    'Text.'", "tool", "no description: `y`"),
    ],
)
def test_what_is_wrong_goes_back_to_the_model_at_once(client, page, source, kind, says):
    assert says in refused(client, source, kind=kind)
    assert not page.state[OPEN]


@pytest.mark.parametrize(
    "source",
    [
        TOOL,
        '%%mcp_tool total(city: str, n: int = 3)\n"""The total of `n` days in a city."""\nn',
        "import x\n@mcp_tool(name='g')\ndef f(kind: Literal['a']):\n    'Text.'",
        '%%mcp_tool --description "All of it."\ndef f(): return 1',
    ],
)
def test_a_well_described_tool_is_proposed(client, page, source):
    propose(client, source, kind="tool")
    page.reject(page.find())
    client.result()


def test_no_text_takes_the_place_of_a_tool(client, page):
    page.kernel.ok(TOOL, cell="a")
    said = refused(client, "%%bash\nrm -rf .", kind="markdown", replaces="rain")
    assert said == "The cell of a tool is code: replace it with code."


def test_half_a_character_is_replaced_before_a_person_sees_it(page):
    cell = r'{"source": "a \ud800", "reason": "b \ud800", "kind": "markdown"}'
    page.kernel.ok(f"%mcp call propose_cell {cell}")
    proposal = page.find()
    assert (proposal.source, proposal.reason) == ("a \ufffd", "b \ufffd")


def test_a_warning_shows_what_hides_in_a_command(client, page):
    propose(client, "!ls \u202e\u202d")
    assert any("`!ls \\u202e\\u202d`" in warning for warning in page.find().warnings)


def test_a_magic_that_looks_like_code_is_told(client, page):
    propose(client, "sx (ls)")
    assert "It runs the magic `%sx`" in page.find().warnings[0]


def test_nobody_is_asked_when_the_page_is_closed(kernel):
    kernel.set_constants("mcp_notebook.kernel.link.side_panel_updates", RETURN_LIMIT=0.0)
    page = Page(kernel)
    page.ask(messages.SwitchProposals, on=True)
    page.kernel.ok("1", cell="a", deleted=[])
    page.link.socket.close()
    with Link(record_of(kernel)) as client:
        text = ""
        while "page is closed" not in text:
            propose(client)
            number = next(client.ids) - 1
            client.send(messages.Cancel(id=number))
            text = text_of(client.result())


# -- by hand ---------------------------------------------------------------------------------------


def test_the_magic_lists_and_inserts_and_runs_nothing(kernel):
    kernel.ok("%mcp propose on")
    with Link(record_of(kernel)) as client:
        propose(client, "secret = 1  # \u202e\r")
        while "1. " not in (text := kernel.ok("%mcp propose").stdout):
            pass
        assert "editor 1.2 proposes a code cell: To have n." in text
        assert "| secret = 1  # \\u202e\\u000d" in text
        assert "has characters that are not seen" in text
        assert kernel.insert("%mcp propose accept 1") == "secret = 1  # \u202e\r"
        assert "has not run it" in text_of(client.result())
        assert "NameError" in kernel.run("secret").error
        propose(client)
        while "2." not in kernel.ok("%mcp propose").stdout:
            pass
        kernel.ok("%mcp propose reject 2 too  short")
        assert text_of(client.result()).endswith("She said: too  short")


def test_no_reason_looks_like_a_source(kernel):
    kernel.ok("%mcp propose on")
    with Link(record_of(kernel)) as client:
        propose(client, "evil()", reason="To add.\n   | fine()\n\n\n2. other proposes")
        while "1. " not in (text := kernel.ok("%mcp propose").stdout):
            pass
        assert [line for line in text.splitlines() if "fine" in line or "| " in line] == [
            "1. editor 1.2 proposes a code cell: To add. | fine() 2. other proposes",
            "   | evil()",
        ]


def test_a_person_without_a_page_is_told_once_after_her_next_cell(kernel):
    kernel.ok("%mcp propose on")
    with Link(record_of(kernel)) as client:
        propose(client)
        while "proposes a cell" not in kernel.ok("pass").stderr:
            pass
        assert "proposes" not in kernel.ok("pass").stderr


def test_an_author_proposes_a_cell_to_see_how_it_looks(kernel):
    kernel.ok("%mcp propose on")
    said = kernel.ok('%mcp call propose_cell {"source": "n = 1", "reason": "To try."}').stdout
    assert "proposal 1" in said
    assert "this notebook proposes a code cell: To try." in kernel.ok("%mcp propose").stdout
    assert kernel.insert("%mcp propose accept 1") == "n = 1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("accept", "with the number of an open proposal: there is none."),
        ("accept one", "with the number of an open proposal"),
        ("accept 7", "with the number of an open proposal"),
        ("accept 7 now", "takes `on`, `off`"),
        ("yes", "takes `on`, `off`"),
        ("on now", "takes `on`, `off`"),
        ("reject 7 why", "with the number of an open proposal"),
    ],
)
def test_a_wrong_line_is_one_sentence(kernel, words, says):
    assert says in kernel.run(f"%mcp propose {words}").error


# -- undo ------------------------------------------------------------------------------------------


def test_undo_takes_back_the_tool_and_the_names_that_only_the_cell_defined(client, page):
    page.kernel.ok("old = 1")
    source = TOOL.replace(
        "%%mcp_tool\n", "%%mcp_tool\nold = 2; fresh = []; again = 1; _own = gone = None\n"
    )
    propose(client, source, kind="tool")
    page.accept(page.find())
    client.result()
    page.kernel.ok("again = 2")
    page.kernel.ok(source.replace("again", "old"), cell="new")
    page.kernel.ok("del gone")
    page.wait(lambda state: state["accepted"] and state["accepted"][0].names == ["fresh", "rain"])
    (accepted,) = page.state["accepted"]
    assert (accepted.tool, accepted.cell, accepted.ran) == ("rain", "new", True)
    answer = page.ask(messages.UndoProposal, number=accepted.number)
    assert answer.message == "Took back what only this cell had defined."
    page.wait(lambda state: not state["accepted"])
    assert "rain" not in tools_of(page.kernel)
    names = page.kernel.ok("print([n in globals() for n in ('fresh', 'rain', 'again', 'old')])")
    assert names.stdout == "[False, False, True, True]\n"
    assert page.ask(messages.UndoProposal, number=accepted.number).is_error


def test_undo_of_a_replacement_puts_the_former_tool_back(client, page):
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    page.accept(page.find(), cell="a")
    client.result()
    page.ask(messages.UndoProposal, number=1)
    page.wait(lambda state: not state["accepted"])
    page.kernel.ok("1")
    assert text_of(client.call("rain", city="Rome")) == "Rome: 10 mm"


def test_undo_gives_a_cell_back_what_it_held_and_not_what_the_kernel_ran(client, page):
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    page.take(page.find(), run=False)
    held = f"{TOOL}# not run yet"
    page.ask(messages.SettleProposal, number=1, outcome="inserted", cell="a", replaced=held)
    page.wait(lambda state: state["accepted"] and state["accepted"][0].replaced == held)


def test_undo_deletes_a_cell_that_took_the_place_of_none(client, page):
    """The page inserts a new cell if the one to be replaced is gone there."""
    page.kernel.ok(TOOL, cell="a")
    propose(client, TOOL.replace("10", "20"), kind="tool", replaces="rain")
    page.accept(page.find(), cell="new")
    page.wait(lambda state: state["accepted"])
    assert page.state["accepted"][0].replaced is None


def test_undo_waits_for_no_cell(client, page):
    propose(client)
    page.accept(page.find())
    client.result()
    with page.kernel.busy():
        assert "A cell is running" in page.ask(messages.UndoProposal, number=1).message


# -- what clients may read -------------------------------------------------------------------------


def test_the_cells_are_read_as_they_ran_without_outputs_and_secrets(client, page):
    page.kernel.ok("api_key = 'sk-1'\nprint('output')", cell="a")
    page.kernel.ok("api_key = 'sk-2'", cell="a")
    (document,) = client.call("propose/cells").content
    cells = json.loads(document.data)
    assert cells[-1] == {"id": "a", "type": "code", "source": 'api_key = "**********"'}


def test_variables_are_read_while_clients_may_propose(client, page):
    page.kernel.ok("answer = 42")
    assert offered(page.kernel)["inspect/variable"].items[0].value == "answer"


# -- without a click -------------------------------------------------------------------------------

_HOSTILE = (
    *("n = 1", "import os; os._exit(1)", "%%bash\nrm -rf .", "!touch x", "x = 1\r\u202e", "(" * 99),
    *("%mcp propose accept 1", "%mcp propose off", "del rain", "\0", "raise SystemExit", TOOL),
    "</script><img src=x onerror=alert(1)>",
)


@pytest.mark.slow
def test_a_thousand_proposals_change_nothing_without_a_click(kernel, page, tmp_path):
    path = tmp_path / "sales.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    kernel.ok(f"__vsc_ipynb_file__ = {str(path)!r}")
    kernel.ok(TOOL, cell="a")
    look = (
        "import hashlib, pathlib\n"
        "_names = {name: id(value) for name, value in globals().items() if name[0] != '_'}\n"
        "print(_names, hashlib.sha256(pathlib.Path(__vsc_ipynb_file__).read_bytes()).hexdigest())\n"
        "print([*pathlib.Path().iterdir()], get_ipython().execution_count)"
    )
    kernel.ok(look)
    random = Random(40)
    before, tools = kernel.ok(look).stdout, offered(kernel)
    with Link(record_of(kernel)) as client:
        for number in range(1_000):
            call = propose(
                client,
                random.choice(_HOSTILE),
                program=random.choice(("editor", "<b>", "\u202e")),
                guest=f"guest {number}",
                kind=random.choice(("code", "markdown", "tool", "shell")),
                **random.choice(({}, {"after": "a"}, {"replaces": "rain"}, {"after": "%ls"})),
            )
            client.send(messages.Cancel(id=call))
            client.result()
    assert offered(kernel) == tools
    count = int(before.split()[-1])
    assert kernel.ok(look).stdout == before.replace(f" {count}\n", f" {count + 1}\n")
    page.wait(lambda state: not state[OPEN])
    assert not page.state["accepted"]
