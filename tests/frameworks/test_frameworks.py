"""Real frameworks with real notebooks: what each of them shows its model.

One conversation for each framework: its tests run in this order. What depends on the framework is
in `frameworks.toml`, by the names of the tests; the documentation's table is made from it.
"""

import base64
import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from bridges import TOKEN, http_bridge
from frameworks import FRAMEWORKS, LIMIT, ROWS, CannotInstall, bring_in
from judging_proxy import judging
from live import live_kernel
from model_apis import ChatApi, ResponsesApi
from stand_in import PATIENCE, stand_in
from talks import DATA, LOAD, PNG, TOOLS, end, find_parts, make_env, start, yes

AGENTS = Path(__file__).parent / "agents"
MORE_TOOLS = """%%mcp_tool
class Folder(BaseModel):
    name: str
    inside: "list[Folder]" = []

def plot_rain():
    "Says what it plots, and plots it."
    import matplotlib.pyplot as plt
    print("the rain")
    plt.plot([1, 2, 3])
    plt.show()

def count_folders(root: Folder) -> int:
    "Counts folders."
    return 1 + sum(map(count_folders, root.inside))
"""
SALES, STOCK = (
    f"%%mcp_tool\ndef summary() -> str:\n    'Sums up.'\n    return 'the {name}'\n"
    for name in ("sales", "stock")
)
GREET = "%%mcp_tool\ndef greet(name: str) -> str:\n    'Greets.'\n    return f'Good day, {name}.'\n"
MODEL_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
"""A tool's name for the APIs of OpenAI and Anthropic: they refuse a request with any other."""
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(LIMIT + PATIENCE)]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def talk(request, module_home):
    """The conversation with an agent."""
    home = module_home / str(request.param_index)  # short, for the sockets below it
    home.mkdir()
    with Conversation(request.param, home) as talk:
        yield talk


def _api(name):
    # Only there does it pass pictures on.
    return ResponsesApi() if name == "OpenAI Agents" else ChatApi()


class Conversation:
    """Two notebooks, served over HTTP with a token, and an agent that is asked something."""

    def __init__(self, name, home):
        self.name, self.home = name, home
        self.framework = FRAMEWORKS[name]
        self._stack = ExitStack()

    def __enter__(self):
        try:
            python = bring_in(self.framework.packages)
        except CannotInstall as error:
            pytest.fail(str(error), pytrace=False)
        with self._stack:
            enter = self._stack.enter_context
            self.sales, self.stock = (
                enter(live_kernel(self.home, notebook=str(self.home / f"{name}.ipynb")))
                for name in ("sales", "stock")
            )
            for code in (LOAD, TOOLS, DATA, MORE_TOOLS, SALES):
                self.sales.ok(code)
            for code in (LOAD, STOCK):
                self.stock.ok(code)
            url = enter(judging(enter(http_bridge(self.home)).url))
            self.model = enter(stand_in(_api(self.name)))
            process = self._start(python, url)
            self._stack.callback(end, process)
            self.model.watch(process, self.home / "said")
            self._stack = self._stack.pop_all()
        return self

    def _start(self, python, url):
        env = make_env(self.home, self.model.url) | {
            "NOTEBOOK_URL": url,
            "NOTEBOOK_TOKEN": TOKEN,
            "MODEL_URL": f"{self.model.url}/v1",
        }
        # -P: its name may be that of the framework's package.
        command = [python, "-P", AGENTS / self.framework.agent]
        return start(command, self.home, self.home, env, has_pipes=False)

    def __exit__(self, *exc):
        self._stack.__exit__(*exc)

    def call(self, tool, /, **arguments):
        """Let the model call a tool, and return what it is told."""
        return self.model.call(self.framework.tool.format(tool), **arguments)


@pytest.fixture
def expected(request, talk):
    """What was seen of this framework in this test."""
    return talk.framework.seen[request.node.originalname.removeprefix("test_")]


def _find_picture(told, text):
    """Say how the model gets a picture, and whether it gets the text beside it."""
    if "Stored 'image.png' in memory" in told.text and text not in told.text:
        return "stored, without the text"
    assert text in told.text
    if any(kind == "image/png" and data.startswith(PNG) for kind, data in told.pictures):
        return "yes"
    return "as base64" if base64.b64encode(PNG[:3]).decode() in told.text else "no"


def test_all_tools_are_offered_under_names_that_models_take(talk):
    offered = talk.model.list_tools()
    for name in ("greet", "rain_table", "plot_rain", "extremes", "fail", "count_folders"):
        assert talk.framework.tool.format(name) in offered
    for name in offered:
        assert MODEL_NAME.fullmatch(name)
    assert "Greets somebody." in json.dumps(offered)


def test_text(talk, expected):
    assert yes("Hello, Ada!" in talk.call("greet", name="Ada").text) == expected


def test_nested_arguments(talk, expected):
    told = talk.call("count_folders", root={"name": "a", "inside": [{"name": "b"}]})
    assert yes(re.search(r"\b2\b", told.text)) == expected


def test_wrong_arguments(talk, expected):
    told = talk.call("greet", nam="Ada").text
    says_it = "yes" if "did you mean 'name'?" in told else "in its own words"
    assert (says_it if re.search("nam(?!e)", told) else "no") == expected


def test_tables(talk, expected):
    told = talk.call("rain_table", days=1000)  # all arguments: smolagents knows no optional ones
    assert yes("1,000 rows x 2 columns" in told.text and "999,0.5" in told.text) == expected


def test_whole_tables(talk, expected):
    told = talk.call("rain_table", days=1000)
    address = re.search(r"notebook://\w+/\w+/table\.csv", told.text)
    assert address
    assert "read_notebook_resource" in told.text
    # All arguments: smolagents knows no optional ones.
    place = {"first_line": 1, "lines": 1000, "first_character": 1}
    read = talk.call("read_notebook_resource", uri=address[0], **place)
    assert yes("500,0.5" in read.text) == expected


def test_pictures_after_a_print(talk, expected):
    told = talk.call("plot_rain")
    assert _find_picture(told, "the rain") == expected


def test_data_and_pictures(talk, expected):
    told = talk.call("extremes")
    assert "67890" in told.text or expected == "stored, without the text"
    assert _find_picture(told, "printed words") == expected


def test_structured_content(talk, expected):
    told = talk.call("by_hand")
    is_stored = expected == "stored, without the text"
    assert (_find_picture(told, "said words") if is_stored else find_parts(told)) == expected


def test_errors(talk, expected):
    assert yes("ValueError: no such year: 1800" in talk.call("fail").text) == expected


def test_equal_names(talk, expected):
    told = [talk.call(name).text for name in ("sales_summary", "stock_summary")]
    assert yes("the sales" in told[0] and "the stock" in told[1]) == expected


def test_a_notebook_opened_while_it_runs(talk, expected):
    """An agent that lists once keeps the name that it was told, which now two notebooks have."""
    talk.stock.ok(GREET)
    # The bridge hears of the second notebook's tool some milliseconds later.
    told = next(
        told
        for told in (talk.call("greet", name=f"Ada {n}") for n in range(100))
        if "Hello" not in told.text
    )
    # Whoever lists the tools for each turn calls none that is not there.
    says_both = "'sales_greet'" in told.text and "'stock_greet'" in told.text
    lists_both = {"sales_greet", "stock_greet"} <= talk.model.list_tools().keys()
    assert yes(says_both or lists_both) == expected


def test_dead_kernels(talk, expected):
    talk.sales.manager.shutdown_kernel(now=True)
    told = next(
        told for told in (talk.call("fail") for _ in range(100)) if "ValueError" not in told.text
    )
    is_told = "sales" in told.text and "kernel" in told.text
    is_listed = talk.framework.tool.format("fail") in talk.model.list_tools()
    assert yes(is_told or not is_listed) == expected


def test_it_ends_and_nothing_left_this_machine(talk):
    if "final_answer" in talk.model.list_tools():
        talk.model.start_call("final_answer", answer="All done.")
    talk.model.say_end()
    assert talk.model.wait_for_process() == 0
    assert talk.model.refused == []


def test_the_table_has_every_test_of_every_framework():
    for framework in FRAMEWORKS.values():
        assert framework.seen.keys() == ROWS.keys()
