"""MCP's Inspector, its command line, with the demo notebook: in each era, over each transport."""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from clients import TOKEN, http_bridge
from forked_command import list_words
from live import kernel_env, live_kernel
from npm import LIMIT

from mcp_notebook.text.missing_tools import READ_RESOURCE

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "weather.ipynb"
TOOLS = ["monthly_rain", "plot_temperature", "rainy_days", "chance_of_dry_spell", READ_RESOURCE]

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(LIMIT)]


@pytest.fixture(scope="module")
def notebook(module_home):
    """The demo notebook, open; a bridge that ran it for each question would take seconds."""
    with live_kernel(module_home, notebook=str(NOTEBOOK)) as kernel:
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            if cell.cell_type == "code" and not cell.source.startswith("%mcp call"):
                kernel.ok(cell.source)
        yield kernel


@pytest.fixture(scope="module")
def url(notebook):
    """The address of a bridge to the demo notebook."""
    with http_bridge(notebook.home) as served:
        yield served.url


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    """What the Inspector calls the two ways of the protocol to begin."""
    return request.param


@pytest.fixture(params=["stdio", "http"])
def server(request, era, notebook):
    """The Inspector's arguments that name the bridge."""
    options = ["--protocol-era", era, "--connect-timeout", "60000"]
    if request.param == "stdio":
        return [*options, *list_words("stdio")]
    url = request.getfixturevalue("url")
    header = f"Authorization: Bearer {TOKEN}"
    return [*options, "--transport", "http", "--server-url", url, "--header", header]


@pytest.fixture
def inspect(npm_programs, server, module_home, record_property):
    """Run the Inspector, and return what it prints."""

    def run(*arguments):
        ended = subprocess.run(
            [*npm_programs.inspector, *server, "--format", "json", *arguments],
            env=kernel_env(module_home),
            check=False,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        record_property("runs of the Inspector", 1)
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
