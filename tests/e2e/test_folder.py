"""A folder of notebooks that start on call: real bridges, kernels and clients."""

import json
import re
import time

import anyio
import pytest
from clients import ERAS, TOKEN, TRANSPORTS, Changes, connected, http_bridge, over_http, text_of
from forked_command import list_words
from listing import list_tools
from live import TIMEOUT, kernel_env
from mcp_types import ElicitResult, PromptReference
from served_folder import LOAD, write

pytestmark = pytest.mark.anyio

SALES = """%%mcp_tool --read-only
def top(n: int = 3) -> list[str]:
    "The best customers."
    return ["ada", "bob", "cleo"][:n]

def total() -> float:
    "The sum of all sales."
    return 12.5
"""
MORE = """%%mcp_prompt
def greet(name: str) -> str:
    "Greets."
    return f"Greet {name}."

%%mcp_resource data://notes
NOTES = "These are the notes."
"""


@pytest.fixture
def folder(home):
    """A folder with three notebooks, none of which has run."""
    folder = home / "work"
    write(folder / "sales.ipynb", LOAD, SALES, title="# The sales of 2024")
    write(folder / "sub" / "costs.ipynb", LOAD, SALES.replace("best", "dearest"), title="# Costs")
    write(folder / "fails.ipynb", LOAD, SALES.replace("top", "other"), "1 / 0")
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
        (run,) = await list_tools(client)
        assert run.name == "run_notebook"
        assert "- sales: The sales of 2024. Its code declares top (The best" in run.description
        assert not list((home / ".mcp-notebook").glob("kernels/*"))
        said = await _ask(client, "run_notebook", name="sales")
        assert said.startswith("sales has run, and 2 tools can be called now:\n\ntop (notebook")
        assert await _ask(client, "total") == "12.5"
        failed = await _call(client, "run_notebook", name="fails")
        assert failed.is_error
        assert "ZeroDivisionError" in text_of(failed)
        assert "Code cell 3 of 3 of fails.ipynb failed:\n\n    1 / 0" in text_of(failed)
        unknown = await _call(client, "run_notebook", name="sale")
        assert text_of(unknown).startswith("Unknown notebook: 'sale'.")
    async with connected(home, era, transport, str(folder)) as client:
        tools = await list_tools(client)
        assert [tool.name for tool in tools] == ["run_notebook", "top", "total"]
        said = []

        async def note(_done, _total, message):
            said.append(message)

        result = await client.call_tool("top", {"n": 1}, progress_callback=note)
        assert text_of(result) == '["ada"]'
        assert said[0] == "The kernel of 'sales' is starting: the call waits until it is ready."


@pytest.mark.slow
@pytest.mark.parametrize(("era", "transport"), [("auto", "stdio"), ("legacy", "http")])
async def test_a_run_is_asked_about_and_is_in_the_audit_log(home, folder, era, transport):
    answers = ["Allow once", "Allow once", "Deny"]

    async def answer(_context, _params):
        return ElicitResult(action="accept", content={"answer": answers.pop()})

    way = (home, era, transport, str(folder), "--confirm-destructive")
    async with connected(*way, elicitation_callback=answer) as client:
        for name in ("sales", "sales", "fails"):
            await _call(client, "run_notebook", name=name)
    lines = (home / ".mcp-notebook" / "audit.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    assert [(call["tool"], call["notebook"], call["outcome"]) for call in calls] == [
        ("run_notebook", "sales", "refused"),
        ("run_notebook", "sales", "ok"),
        ("run_notebook", "fails", "error"),
    ]
    assert "did not allow it" in calls[0]["error"]
    assert "fails.ipynb failed" in calls[2]["error"]


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_with_meta_tools_only_notebooks_are_found_and_run(home, folder, era, transport):
    async with connected(home, era, transport, str(folder), "--meta-tools=only") as client:
        assert len((await client.list_tools()).tools) == 5
        found = await _ask(client, "search_notebook_tools", query="dearest customers")
        assert found.startswith("sub--costs (a notebook that has to run)\nCosts. Its code declares")
        assert 'call `run_notebook` with {"name": "sub--costs"}' in found
        said = await _ask(client, "describe_notebook_tool", name="run_notebook")
        assert "- sub--costs: Costs." in said
        run = {"name": "run_notebook", "arguments": {"name": "sub--costs"}}
        assert "sub--costs has run" in await _ask(client, "call_notebook_tool", **run)
        found = await _ask(client, "search_notebook_tools", query="dearest customers")
        assert found.startswith("top (notebook sub--costs)\nThe dearest customers.")
        assert await _ask(client, "call_notebook_tool", name="total") == "12.5"


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_an_idle_kernel_is_stopped_and_nobody_is_told_of_a_change(home, folder, era):
    env = {"MCP_NOTEBOOK_IDLE_MINUTES": "0.01"}
    with http_bridge(home, str(folder), env=env) as served:
        changes = Changes()
        async with (
            over_http(served.url, era, message_handler=changes.handle) as client,
            changes.watch(client, era, tools_list_changed=True),
        ):
            await _ask(client, "run_notebook", name="sales")
            await changes.wait()
            before = await list_tools(client)
            with anyio.fail_after(TIMEOUT):
                while list((home / ".mcp-notebook" / "kernels").glob("*.json")):
                    assert await list_tools(client) == before
            assert await _ask(client, "total") == "12.5"
            assert not changes.seen.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_prompts_and_resources_of_sleeping_notebooks_are_listed_and_wake_them(home, era):
    cells = [
        "%%mcp_prompt\ndef greet(name: str) -> str:\n    'Greets.'\n    return f'Greet {name}.'",
        "%%mcp_resource data://notes\n'These are the notes.'",
        "%%mcp_skill weekly\n---\nname: weekly\ndescription: How it is done.\n---\n# Weekly",
    ]
    folder = home / "work"
    write(folder / "sales.ipynb", LOAD, SALES, *cells)
    async with connected(home, era, "stdio", str(folder)) as client:
        await _ask(client, "run_notebook", name="sales")
    async with connected(home, era, "stdio", str(folder)) as client:
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
    async with connected(home, era, "stdio", str(folder)) as client:
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
            (run,) = await list_tools(client)
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
        assert [*tools] == ["run_notebook", "top", "total"]
        assert "- sub--costs: " in tools["run_notebook"].description
        assert "- sales: " not in tools["run_notebook"].description
        assert await _ask(client, "total") == "12.5"


async def test_a_notebook_of_a_folder_never_has_the_name_of_one_beside_it(home, folder, tmp_path):
    beside = write(tmp_path / "beside" / "sales.ipynb", LOAD, SALES)
    async with connected(home, "auto", "stdio", str(beside), str(folder)) as client:
        with anyio.fail_after(TIMEOUT):
            tools = {tool.name: tool for tool in await list_tools(client)}
        names = [line.split(": ")[0] for line in tools["run_notebook"].description.splitlines()]
        assert any(re.fullmatch("- sales-[0-9a-f]{10}", name) for name in names)


@pytest.mark.slow
async def test_which_notebook_has_a_name_depends_on_the_command_not_on_what_has_run(home, folder):
    first = write(home / "a" / "sales.ipynb", LOAD, SALES.replace("best", "first"))
    second = write(home / "b" / "sales.ipynb", LOAD, SALES.replace("best", "second"))
    async with connected(home, "auto", "stdio", str(second)) as client:
        await _ask(client, "total")
    words = [str(first), str(folder), str(second)]
    async with connected(home, "auto", "stdio", *words) as client:
        with anyio.fail_after(TIMEOUT):
            while len(tools := await list_tools(client)) < 5:
                pass
    said = {tool.name: tool.description for tool in tools}
    assert said["sales_top"] == "The first customers."
    assert said["sales-2_top"] == "The second customers."
    assert re.search(r"^- sales-[0-9a-f]{10}: ", said["run_notebook"], re.MULTILINE)


async def test_an_empty_folder_is_served_and_a_notebook_that_comes_is_seen(home):
    folder = home / "work"
    folder.mkdir()
    async with connected(home, "auto", "stdio", str(folder)) as client:
        assert await list_tools(client) == []
        write(folder / "sales.ipynb", LOAD, SALES)
        with anyio.fail_after(TIMEOUT):
            while not (tools := await list_tools(client)):
                pass
        assert [tool.name for tool in tools] == ["run_notebook"]


@pytest.mark.slow
async def test_fifty_notebooks_are_listed_in_a_second_without_a_kernel(home):
    folder = home / "work"
    for number in range(50):
        code = SALES.replace("top", f"top{number}").replace("total", f"total{number}")
        write(folder / f"sales{number}.ipynb", LOAD, code, title=f"# The sales of {number}")
    began = time.monotonic()
    async with connected(home, "auto", "stdio", str(folder), "--meta-tools=only") as client:
        tools = (await client.list_tools()).tools
        took = time.monotonic() - began
        assert len(tools) == 5
        assert len(json.dumps([tool.model_dump(exclude_none=True) for tool in tools])) < 6_000
        assert "has to run" in await _ask(client, "search_notebook_tools", query="sales of 17")
        assert not list((home / ".mcp-notebook").glob("kernels/*"))
    assert took < 5, took  # with a kernel, it would be a minute


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_to_complete_an_argument_starts_no_kernel(home, era):
    folder = home / "work"
    cell = (
        "%%mcp_prompt\nfrom typing import Literal\ndef greet(name: Literal['Ada', 'Bob']) -> str:\n"
        "    'Greets.'\n    return name"
    )
    write(folder / "sales.ipynb", LOAD, SALES, cell)
    async with connected(home, era, "stdio", str(folder)) as client:
        await _ask(client, "run_notebook", name="sales")
    async with connected(home, era, "stdio", str(folder)) as client:
        prompt = PromptReference(type="ref/prompt", name="greet")
        argument = {"name": "name", "value": "A"}
        assert (await client.complete(prompt, argument)).completion.values == []
        await _ask(client, "total")
        assert (await client.complete(prompt, argument)).completion.values == ["Ada"]
