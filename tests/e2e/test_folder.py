"""A folder of notebooks that start on call: real bridges, kernels and clients."""

import anyio
import pytest
from audit_lines import read_ends
from clients import TOKEN, connected, http_bridge, over_http, text_of
from forked_command import list_words
from listing import list_tools
from live import TIMEOUT, kernel_env
from mcp_types import ElicitResult, PromptReference
from notebook_files import write_notebook
from served_folder import LOAD

pytestmark = pytest.mark.anyio

SALES = """%%mcp_tool --read-only
def top(n: int = 3) -> list[str]:
    "The best customers."
    return ["ada", "bob", "cleo"][:n]

def total() -> float:
    "The sum of all sales."
    return 12.5
"""

NAMES = ["other", "fails_total", "sales_top", "sales_total", "sub--costs_top", "sub--costs_total"]
"""The tools of the notebooks below, whether they have run or not."""


@pytest.fixture
def folder(home):
    """A folder with three notebooks, none of which has run."""
    folder = home / "work"
    write_notebook(folder / "sales.ipynb", LOAD, SALES, title="# The sales of 2024")
    write_notebook(
        folder / "sub" / "costs.ipynb", LOAD, SALES.replace("best", "dearest"), title="# Costs"
    )
    write_notebook(folder / "fails.ipynb", LOAD, SALES.replace("top", "other"), "1 / 0")
    return folder


async def _call(client, tool, /, **arguments):
    with anyio.fail_after(TIMEOUT):
        return await client.call_tool(tool, arguments)


async def _ask(client, tool, /, **arguments):
    result = await _call(client, tool, **arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


@pytest.mark.parametrize(
    ("era", "transport"),
    [
        ("auto", "stdio"),
        pytest.param("legacy", "http", marks=pytest.mark.slow),
        pytest.param("legacy", "stdio", marks=pytest.mark.slow),
        pytest.param("auto", "http", marks=pytest.mark.slow),
    ],
)
async def test_a_folder_is_served_and_its_notebooks_run_when_they_are_called(
    home, folder, era, transport
):
    async with connected(home, era, transport, str(folder)) as client:
        run, *tools = await list_tools(client)
        assert run.name == "run_notebook"
        assert '- sales: "The sales of 2024."' in run.description
        assert [tool.name for tool in tools] == NAMES
        assert tools[2].description == (
            "The first call runs the notebook 'work/sales.ipynb'. "
            'Its source says: "The best customers."'
        )
        assert tools[2].annotations is None  # it runs all cells
        assert not list((home / ".mcp-notebook").glob("kernels/*"))
        assert await _ask(client, "sub--costs_top", n=1) == '["ada"]'
        said = await _ask(client, "run_notebook", name="sales")
        assert said.startswith("sales has run, and 2 tools can be called now:\n\nsales_top (note")
        assert await _ask(client, "sales_total") == "12.5"
        failed = await _call(client, "run_notebook", name="fails")
        assert failed.is_error
        assert "ZeroDivisionError" in text_of(failed)
        assert "Code cell 3 of 3 of fails.ipynb failed:\n\n    1 / 0" in text_of(failed)
        unknown = await _call(client, "run_notebook", name="sale")
        assert text_of(unknown).startswith("Unknown notebook: 'sale'.")
    async with connected(home, era, transport, str(folder)) as client:
        tools = await list_tools(client)
        assert [tool.name for tool in tools] == ["run_notebook", *NAMES]
        said = []

        async def note(_done, _total, message):
            said.append(message)

        result = await client.call_tool("sales_top", {"n": 1}, progress_callback=note)
        assert text_of(result) == '["ada"]'
        assert said[0] == "The kernel of 'sales' is starting: the call waits until it is ready."


@pytest.mark.slow
async def test_a_run_is_asked_about_and_is_in_the_audit_log(home, folder):
    answers = ["Allow once", "Allow once", "Deny"]

    async def answer(_context, _params):
        return ElicitResult(action="accept", content={"answer": answers.pop()})

    way = (home, "auto", "http", str(folder), "--confirm-destructive")
    async with connected(*way, elicitation_callback=answer) as client:
        for name in ("sales", "sales", "fails"):
            await _call(client, "run_notebook", name=name)
    calls = read_ends(home / ".mcp-notebook" / "audit.jsonl")
    assert [(call["tool"], call["notebook"], call["outcome"]) for call in calls] == [
        ("run_notebook", "sales", "refused"),
        ("run_notebook", "sales", "ok"),
        ("run_notebook", "fails", "error"),
    ]
    assert "did not allow it" in calls[0]["error"]
    assert "fails.ipynb failed" in calls[2]["error"]


@pytest.mark.slow
async def test_with_meta_tools_only_notebooks_are_found_and_run(home, folder):
    async with connected(home, "auto", "http", str(folder), "--meta-tools=only") as client:
        assert len((await client.list_tools()).tools) == 5
        found = await _ask(client, "search_notebook_tools", query="dearest customers")
        assert found.startswith("sub--costs_top (notebook sub--costs)\nThe first call runs")
        said = await _ask(client, "describe_notebook_tool", name="run_notebook")
        assert '- sub--costs: "Costs.' in said
        run = {"name": "run_notebook", "arguments": {"name": "sub--costs"}}
        assert "sub--costs has run" in await _ask(client, "call_notebook_tool", **run)
        found = await _ask(client, "search_notebook_tools", query="dearest customers")
        assert found.startswith("sub--costs_top (notebook sub--costs)\nThe dearest customers.")
        assert await _ask(client, "call_notebook_tool", name="sub--costs_total") == "12.5"


@pytest.mark.slow
async def test_prompts_and_resources_of_sleeping_notebooks_are_listed_and_wake_them(home):
    cells = [
        "%%mcp_prompt\ndef greet(name: str) -> str:\n    'Greets.'\n    return f'Greet {name}.'",
        "%%mcp_resource data://notes\n'These are the notes.'",
        "%%mcp_skill weekly\n---\nname: weekly\ndescription: How it is done.\n---\n# Weekly",
    ]
    folder = home / "work"
    write_notebook(folder / "sales.ipynb", LOAD, SALES, *cells)
    async with connected(home, "auto", "stdio", str(folder)) as client:
        await _ask(client, "run_notebook", name="sales")
    async with connected(home, "auto", "stdio", str(folder)) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.name == "greet"
        uris = {str(each.uri) for each in (await client.list_resources()).resources}
        assert {"data://notes", "skill://weekly/SKILL.md"} <= uris
        skill = await client.read_resource("skill://weekly/SKILL.md")
        assert "# Weekly" in skill.contents[0].text  # no kernel is needed for that
        assert not list((home / ".mcp-notebook" / "kernels").glob("*.json"))
        with anyio.fail_after(TIMEOUT):
            got = await client.get_prompt("greet", {"name": "Ada"})
        assert got.messages[0].content.text == "Greet Ada."
    async with connected(home, "auto", "stdio", str(folder)) as client:
        with anyio.fail_after(TIMEOUT):
            read = await client.read_resource("data://notes")
        assert "These are the notes." in read.contents[0].text


@pytest.mark.slow
async def test_a_caller_starts_nothing_that_he_may_not_call(home, folder):
    """Named tokens: one for the tools of one notebook, and one that may only read."""
    tokens = {}
    for name, options in {"costs": ["--tools", "sub--costs.*"], "reader": ["--read-only"]}.items():
        words = list_words("token", "add", name, *options)
        done = await anyio.run_process(words, env=kernel_env(home))
        tokens[name] = done.stdout.decode().strip().splitlines()[-1].split()[-1]
    with http_bridge(home, str(folder)) as served:
        async with over_http(served.url, "auto", token=tokens["reader"]) as client:
            assert await list_tools(client) == []
            assert (await _call(client, "run_notebook", name="sales")).is_error
        async with over_http(served.url, "auto", token=tokens["costs"]) as client:
            run, *tools = await list_tools(client)
            assert [tool.name for tool in tools] == NAMES[-2:]
            assert "sub--costs" in run.description
            assert "sales:" not in run.description
            refused = await _call(client, "run_notebook", name="sales")
            assert text_of(refused) == "Unknown notebook: 'sales'. The notebooks are: sub--costs."
            await _ask(client, "run_notebook", name="sub--costs")
        async with over_http(served.url, "auto", token=TOKEN) as client:
            await _ask(client, "run_notebook", name="sales")
        async with over_http(served.url, "auto", token=tokens["reader"]) as client:
            assert [tool.name for tool in await list_tools(client)] == [
                "sales_top",
                "sales_total",
                "sub--costs_top",
                "sub--costs_total",
            ]


@pytest.mark.slow
async def test_a_file_and_a_folder_are_served_together(home, folder):
    async with connected(home, "auto", "stdio", str(folder / "sales.ipynb"), str(folder)) as client:
        with anyio.fail_after(TIMEOUT):
            tools = {tool.name: tool for tool in await list_tools(client)}
        assert set(tools) == {"run_notebook", *NAMES}
        assert "- sub--costs: " in tools["run_notebook"].description
        assert "- sales: " not in tools["run_notebook"].description
        assert await _ask(client, "sales_total") == "12.5"


async def test_an_empty_folder_is_served_and_a_notebook_that_comes_is_seen(home):
    folder = home / "work"
    folder.mkdir()
    async with connected(home, "auto", "stdio", str(folder)) as client:
        assert await list_tools(client) == []
        write_notebook(folder / "sales.ipynb", LOAD, SALES)
        with anyio.fail_after(TIMEOUT):
            while not (tools := await list_tools(client)):
                pass
        assert [tool.name for tool in tools] == ["run_notebook", "top", "total"]


@pytest.mark.slow
async def test_to_complete_an_argument_starts_no_kernel(home):
    folder = home / "work"
    cell = (
        "%%mcp_prompt\nfrom typing import Literal\ndef greet(name: Literal['Ada', 'Bob']) -> str:\n"
        "    'Greets.'\n    return name"
    )
    write_notebook(folder / "sales.ipynb", LOAD, SALES, cell)
    async with connected(home, "auto", "stdio", str(folder)) as client:
        await _ask(client, "run_notebook", name="sales")
    async with connected(home, "auto", "stdio", str(folder)) as client:
        prompt = PromptReference(type="ref/prompt", name="greet")
        argument = {"name": "name", "value": "A"}
        assert (await client.complete(prompt, argument)).completion.values == []
        await _ask(client, "total")
        assert (await client.complete(prompt, argument)).completion.values == ["Ada"]
