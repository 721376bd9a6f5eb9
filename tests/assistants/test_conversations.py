"""Real assistants with a real notebook: what each of them shows its model.

One conversation for each assistant: its tests run in this order. What depends on the assistant is
in `seen.toml`, by the names of the tests; the documentation's table is made from it.
"""

import json
import re

import pytest
from assistants import ASSISTANTS
from conversation import LATE, MORE_TOOLS, conversation
from live import TIMEOUT, until
from notebook_page import Page
from npm_packages import LIMIT
from seen import ROWS, SEEN
from stand_in import PATIENCE
from talks import LOAD, PNG, TOOLS, find_parts, yes

from mcp_notebook.clients.known_clients import find_client

pytestmark = [pytest.mark.assistants, pytest.mark.timeout(LIMIT + PATIENCE)]
NAMES = [
    *("greet", "rain_table", "plot_rain", "extremes", "by_hand", "fail", "count", "ask", "hang"),
    "learn",
    *("rain_which_notebook", "snow_which_notebook"),
]


@pytest.fixture(
    scope="module",
    params=ASSISTANTS,
)
def talk(request, module_home, modules):
    """The conversation with an assistant."""
    home = module_home / str(request.param_index)  # short, for the sockets below it
    home.mkdir()
    with conversation(request.param, home, modules) as talk:
        yield talk


@pytest.fixture
def expected(request, talk):
    """What was seen of this assistant in this test."""
    return SEEN[talk.name][request.node.originalname.removeprefix("test_")]


def test_connected(talk, expected):
    talk.model.list_tools()  # it has begun
    connected = talk.assistant.connected
    is_said = connected and connected in talk.list_servers()
    assert ("yes" if is_said else "does not say") == expected


def test_tools_are_offered_as_they_are_declared(talk):
    talk.look_for_tools(*NAMES)
    offered = str(talk.model.turn)
    for name in NAMES:
        assert talk.assistant.tool.format(name).rpartition("/")[2] in offered
    assert "Greets somebody." in offered


def test_tools_of_two_notebooks_with_one_name_are_told_apart(talk):
    for notebook in ("rain", "snow"):
        told = talk.call(f"{notebook}_which_notebook")
        assert f"the notebook about {notebook}" in told.text


def test_text(talk, expected):
    told = talk.call("greet", name="Ada")
    assert yes("Hello, Ada!" in told.text) == expected


def test_tables(talk, expected):
    told = talk.call("rain_table")
    assert yes("1,000 rows x 2 columns" in told.text and "999,0.5" in told.text) == expected


def test_links(talk, expected):
    told = talk.call("rain_table")
    assert yes(re.search(r"notebook://\w+/\w+/table\.csv", told.text)) == expected


def test_resources(talk, expected):
    if not talk.assistant.reader:
        assert expected == "no"
        return
    told = talk.call("rain_table")
    address = re.search(r"notebook://\w+/\w+/table\.csv", told.text)[0]
    read = talk.read_resource(address, "500,0.5")
    assert yes("500,0.5" in read.text) == expected


def test_only_our_pages_show_the_middle_of_a_long_original(talk):
    told = talk.call("rain_table", days=100_000)
    address = re.search(r"notebook://\w+/\w+/table\.csv", told.text)[0]
    if talk.assistant.reader:
        read = talk.read_resource(address, "1,0.5")
        assert "\n50000,0.5" not in read.text.replace("\\n", "\n")
    page = talk.call("read_notebook_resource", uri=address, first_line=50_000, lines=10)
    assert "\n50000,0.5" in page.text.replace("\\n", "\n")


def test_pictures(talk, expected):
    told = talk.call("plot_rain")
    assert "the rain" in told.text
    pictures = [data for kind, data in told.pictures if kind == "image/png"]
    assert yes(pictures and pictures[0].startswith(PNG)) == expected
    assert len(told.text) < 1_000, "a picture as text costs as much as a book"


def test_structured_content(talk, expected):
    assert find_parts(talk.call("by_hand")) == expected


def test_data_and_pictures(talk, expected):
    told = talk.call("extremes")
    assert "printed words" in told.text
    assert re.search(r"high\W+67890", told.text)
    assert ("all" if told.pictures else "no picture") == expected
    assert len(told.text) < 1_000, "a picture as text costs as much as a book"


def test_errors(talk, expected):
    told = talk.call("fail")
    assert "ValueError: no such year: 1800" in told.text
    assert ("marked" if told.is_error else "as text") == expected


def test_wrong_arguments_are_named(talk):
    assert "name" in talk.call("greet", nam="Ada").text


def test_progress(talk, expected):
    told = talk.call("count")
    found = re.search(r"progress wanted: (True|False)", told.text)
    assert yes(found[1] == "True") == expected


def test_questions(talk, expected):
    told = talk.call("ask")
    answers = {"answered: remove": "yes", "not answered": "on screen", "cannot ask": "no"}
    assert [seen for text, seen in answers.items() if text in told.text] == [expected]


def test_new_tools(talk, expected):
    talk.kernel.ok(LATE.format("forty-two"))
    talk.wait_for_tool("dry_days")
    told = talk.call("dry_days")
    if expected == "indirectly":
        assert "forty-two" not in told.text
        told = talk.call("call_notebook_tool", name="dry_days", arguments={})
    assert "forty-two dry days" in told.text


def test_a_tool_that_a_call_declares_is_known_after_its_answer(talk):
    if SEEN[talk.name]["new_tools"] != "yes":
        assert "measure_snow" in talk.call("learn").text
        return
    talk.call("learn")
    assert "measure_snow" in json.dumps(talk.model.turn)


def test_a_name_that_a_second_notebook_gets_while_the_assistant_talks_is_told_apart(talk):
    sees_new_tools = SEEN[talk.name]["new_tools"] == "yes"
    talk.other.ok(LATE.format("seven"))
    for name, number in (("snow_dry_days", "seven"), ("rain_dry_days", "forty-two")):
        talk.wait_for_tool(name)
        if sees_new_tools:
            told = talk.call(name)
        else:
            told = talk.call("call_notebook_tool", name=name, arguments={})
        assert f"{number} dry days" in told.text


def test_a_cell_that_it_proposes_is_run_by_a_person(talk):
    talk.kernel.ok("%mcp propose on")
    page = Page(talk.kernel)
    cell = {"source": "print(6 * 7, 'dry weeks')", "reason": "To count them."}
    if SEEN[talk.name]["new_tools"] == "yes":
        talk.wait_for_tool("propose_cell")
        talk.start_call("propose_cell", **cell)
    else:
        talk.start_call("call_notebook_tool", name="propose_cell", arguments=cell)
    page.accept(page.find())
    assert "42 dry weeks" in talk.model.wait_for_result().text
    page.link.socket.close()
    talk.kernel.ok("%mcp propose off")


def test_every_name_that_was_offered_to_the_model_is_one_that_its_api_takes(talk):
    assert talk.model.list_tools()
    assert talk.model.invalid_names == set()


def test_restarts(talk, expected):
    talk.kernel.manager.restart_kernel(now=False)
    talk.kernel.client.wait_for_ready(timeout=TIMEOUT)
    talk.call("greet", name="nobody")
    talk.kernel.ok(LOAD)
    talk.kernel.ok(MORE_TOOLS)
    talk.kernel.ok(TOOLS)  # the last, as what is waited for is among them
    told = next(
        (
            told
            for told in (talk.call("greet", name=f"Ada {n}") for n in range(100))
            if "Hello" in told.text
        ),
        None,
    )
    assert yes(told) == expected


def test_dead_kernels(talk, expected):
    began = talk.home / "began"
    talk.wait_for_tool("hang")  # some lists of the tools that come back are a moment old
    talk.start_call("hang", path=str(began))
    until(began.exists)
    talk.kernel.manager.shutdown_kernel(now=True)
    told = talk.model.wait_for_result()
    assert yes("The kernel of 'rain' died, and the call was lost." in told.text) == expected


def test_a_conversation_ends_and_nothing_left_this_machine(talk):
    talk.model.say_end()
    if talk.app is not None:
        talk.app.close()
    assert talk.model.wait_for_process() == 0
    assert set(talk.model.refused) <= set(talk.assistant.refused)


def test_the_table_has_every_assistant_and_every_test():
    assert SEEN.keys() == ASSISTANTS.keys()
    for seen in SEEN.values():
        assert seen.keys() == {"package", *ROWS}


@pytest.mark.parametrize("name", [name for name in ASSISTANTS if ASSISTANTS[name].client])
def test_who_does_not_see_new_tools_gets_those_that_call_others(name):
    client = find_client(ASSISTANTS[name].client)
    assert client.sees_new_tools == (SEEN[name]["new_tools"] == "yes")
