"""MCP's Inspector, its command line, with the demo notebook: in each era, over each transport."""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from clients import TOKEN, http_bridge
from forked_command import list_words
from judging_proxy import judging
from judging_stdio import check_judged, judge_words
from kinds import CELLS, ORDERS, REPORT, SKILL
from live import kernel_env, live_kernel
from npm import LIMIT

from mcp_notebook.text.missing_tools import READ_RESOURCE

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "weather.ipynb"
TOOLS = ["monthly_rain", "plot_temperature", "rainy_days", "chance_of_dry_spell", READ_RESOURCE]

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(LIMIT)]


@pytest.fixture(scope="module")
def notebook(module_home):
    """The demo notebook, open, and prompts, resources and a skill in it.

    A bridge that ran it for each question would take seconds.
    """
    with live_kernel(module_home, notebook=str(NOTEBOOK)) as kernel:
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            if cell.cell_type == "code" and not cell.source.startswith("%mcp call"):
                kernel.ok(cell.source)
        for cell in CELLS:
            kernel.ok(cell)
        yield kernel


@pytest.fixture(scope="module")
def url(notebook):
    """The address of a bridge to the demo notebook."""
    with http_bridge(notebook.home) as served, judging(served.url) as url:
        yield url


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    """What the Inspector calls the two ways of the protocol to begin."""
    return request.param


@pytest.fixture(params=["stdio", "http"])
def server(request, era, notebook):
    """The Inspector's arguments that name the bridge."""
    options = ["--protocol-era", era, "--connect-timeout", "60000"]
    if request.param == "stdio":
        yield [*options, *judge_words(notebook.home, list_words("stdio"))]
        check_judged(notebook.home)
        return
    url = request.getfixturevalue("url")
    header = f"Authorization: Bearer {TOKEN}"
    yield [*options, "--transport", "http", "--server-url", url, "--header", header]


@pytest.fixture
def start_inspector(npm_programs, server, module_home, record_property):
    """Run the Inspector to its end."""

    def run(*arguments):
        ended = subprocess.run(
            [*npm_programs.inspector, *server, "--format", "json", *arguments],
            env=kernel_env(module_home),
            check=False,
            capture_output=True,
            text=True,
            timeout=90,
        )
        record_property("runs of the Inspector", 1)
        return ended

    return run


@pytest.fixture
def inspect(start_inspector):
    """Run the Inspector, and return what it prints."""

    def run(*arguments):
        ended = start_inspector(*arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return json.loads(ended.stdout)["result"]

    return run


def test_the_inspector_lists_the_tools_and_finds_nothing_wrong_with_their_schemas(inspect):
    answer = inspect("--method", "tools/list", "--strict")
    assert [tool["name"] for tool in answer["tools"]] == TOOLS


def test_the_inspector_calls_a_tool(inspect):
    answer = inspect(
        *["--method", "tools/call", "--tool-name", "monthly_rain", "--tool-arg", "year=2012"]
    )
    assert "December" in answer["content"][0]["text"]


def test_the_inspector_gets_the_picture_of_a_tool(inspect):
    arguments = json.dumps({"city": "Seattle", "month": 7})
    answer = inspect(
        *["--method", "tools/call", "--tool-name", "plot_temperature"],
        *["--tool-args-json", arguments],
    )
    pictures = [block for block in answer["content"] if block["type"] == "image"]
    assert [picture["mimeType"] for picture in pictures] == ["image/png"]


def test_the_inspector_shows_a_prompt_and_gets_it_with_arguments(inspect):
    [prompt] = inspect("--method", "prompts/list")["prompts"]
    assert prompt["name"] == "report"
    asked = [(each["name"], each["required"]) for each in prompt["arguments"]]
    assert asked == [("year", True), ("region", False)]
    got = inspect(
        *["--method", "prompts/get", "--prompt-name", "report", "--prompt-args", "year=2026"]
    )
    assert got["description"] == prompt["description"]
    [message] = got["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": REPORT}}


def test_the_inspector_says_which_argument_of_a_prompt_is_wrong(start_inspector):
    ended = start_inspector("--method", "prompts/get", "--prompt-name", "report")
    assert ended.returncode != 0
    assert "year: missing" in ended.stderr


def test_the_inspector_reads_resources_and_what_templates_lead_to(inspect):
    listed = inspect("--method", "resources/list")["resources"]
    assert [resource["uri"] for resource in listed] == ["data://orders", SKILL]
    [template] = inspect("--method", "resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "frame://{name}"
    for uri in ("data://orders", "frame://customers"):
        [read] = inspect("--method", "resources/read", "--uri", uri)["contents"]
        assert (read["mimeType"], read["text"]) == ("text/csv", ORDERS)


def test_the_inspector_finds_nothing_wrong_with_the_skills_nor_their_digests(start_inspector, era):
    ended = start_inspector("--method", "skills/list", "--verify", "--require-digests")
    if era == "legacy":  # which has no extensions
        assert "skills_unsupported" in ended.stderr
    else:
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert SKILL in ended.stdout
