"""Skills of a notebook, in cells and in its Markdown, as real clients in both eras get them."""

import hashlib

import anyio
import mcp_types as types
import nbformat
import pytest
import yaml
from clients import ERAS, LOAD, Changes, connected, over_http, tool_kernel
from live import TIMEOUT, Link, live_kernel, record_of
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel
from typer.testing import CliRunner

from mcp_notebook.cli import main

pytestmark = pytest.mark.anyio

REPORT = """%%mcp_skill weekly-report
# The weekly report

Use this for the report of a week. First call `rain`, then read `references/limits.md`.
"""
LIMITS = "%%mcp_skill weekly-report/references/limits.md\nMore than 50 mm a day is heavy rain.\n"
FORECAST = """%%mcp_skill
---
name: forecast
description: "How to forecast: with care"
license: BSD-3-Clause
metadata:
  version: "1.0"
---
Ask for the station first.
"""
TOOL = "%%mcp_tool\ndef forecast() -> str:\n    return 'rain'"
MARKDOWN = "---\nname: stations\ndescription: Which stations there are\n---\nSeattle and Boston."


class Skills(types.PaginatedResult):
    """The result of ``skills/list``."""

    skills: list[dict]


class Skill(BaseModel):
    """The result of ``skills/get``."""

    skill: dict


class Directory(types.PaginatedResult):
    """The result of ``resources/directory/read``."""

    resources: list[types.Resource]


def ask(client, method, answer, **params):
    """Send a request of the extension."""
    request = types.Request[dict, str](method=method, params=params)
    return client.session.send_request(request, answer)


async def skills_of(client):
    """Return the skills by name."""
    listed = await ask(client, "skills/list", Skills)
    return {skill["frontmatter"]["name"]: skill for skill in listed.skills}


@pytest.fixture(scope="module")
def sales(module_home):
    with tool_kernel(module_home, REPORT, LIMITS, FORECAST, TOOL, name="sales") as kernel:
        yield kernel


@pytest.mark.smoke
async def test_what_a_client_reads_of_a_skill_fits_its_entry_also_while_a_cell_runs(
    sales, connect, era, transport
):
    async with connect(era, transport) as client:
        with sales.busy():
            skills = await skills_of(client)
            assert list(skills) == ["weekly-report", "forecast"]
            for name, skill in skills.items():
                got = await ask(client, "skills/get", Skill, uri=skill["uri"])
                assert got.skill == skill
                for file in skill["resources"]:
                    (read,) = (await client.read_resource(file["uri"])).contents
                    data = read.text.encode()
                    assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
                    assert (file["size"], read.mime_type) == (len(data), "text/markdown")
                (read,) = (await client.read_resource(skill["uri"])).contents
                assert yaml.safe_load(read.text.split("---")[1]) == skill["frontmatter"]
                assert skill["uri"] == f"skill://{name}/SKILL.md"
        assert [file["uri"] for file in skills["weekly-report"]["resources"]] == [
            "skill://weekly-report/SKILL.md",
            "skill://weekly-report/references/limits.md",
        ]
        assert skills["weekly-report"]["frontmatter"]["description"].startswith("Use this for")
        assert skills["forecast"]["frontmatter"]["metadata"] == {"version": "1.0"}
        listed = {str(each.uri): each for each in (await client.list_resources()).resources}
        assert listed["skill://forecast/SKILL.md"].name == "forecast"
        assert listed["skill://forecast/SKILL.md"].description == "How to forecast: with care"
        assert "forecast" in {tool.name for tool in (await client.list_tools()).tools}


async def test_the_folder_of_a_skill_is_read_level_by_level(sales, connect, era, transport):
    async with connect(era, transport) as client:
        root = await ask(client, "resources/directory/read", Directory, uri="skill://weekly-report")
        assert [(str(each.uri), each.mime_type) for each in root.resources] == [
            ("skill://weekly-report/SKILL.md", "text/markdown"),
            ("skill://weekly-report/references", "inode/directory"),
        ]
        (file,) = (
            await ask(
                client,
                "resources/directory/read",
                Directory,
                uri="skill://weekly-report/references",
            )
        ).resources
        assert file.name == "limits.md"
        for method, answer, uri, said in (
            ("skills/get", Skill, "skill://none/SKILL.md", "No skill is served at"),
            ("skills/get", Skill, "skill://weekly-report/references/limits.md", "No skill"),
            ("resources/directory/read", Directory, "skill://weekly-report/", "without a slash"),
            ("resources/directory/read", Directory, "skill://forecast/SKILL.md", "is a file"),
            ("resources/directory/read", Directory, "skill:", "not a folder.*`skills/list`"),
        ):
            with pytest.raises(MCPError, match=said) as caught:
                await ask(client, method, answer, uri=uri)
            assert (caught.value.error.code, caught.value.error.data) == (
                INVALID_PARAMS,
                {"uri": uri},
            )
        with pytest.raises(MCPError, match="Unknown cursor"):
            await ask(client, "skills/list", Skills, cursor="x")


async def test_a_server_of_2026_declares_the_extension(sales, connect):
    async with connect("auto", "http") as client:
        declared = client.server_capabilities.extensions
        assert declared["io.modelcontextprotocol/skills"] == {"directoryRead": True}


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_cell_changes_the_digest_and_clients_are_told(sales, connect, era):
    changes = Changes()
    options = {"message_handler": changes.handle_resources} if era == "legacy" else {}
    async with (
        connect(era, "http", **options) as client,
        changes.watch(client, era, resources_list_changed=True),
    ):
        before = (await skills_of(client))["forecast"]
        sales.ok(FORECAST.replace("first", f"last, {era}"))
        await changes.wait()
        while (after := (await skills_of(client))["forecast"]) == before:
            pass  # the notice was of an earlier test's change
        assert before["resources"][0]["digest"] != after["resources"][0]["digest"]
        (read,) = (await client.read_resource(after["uri"], cache_mode="bypass")).contents
        assert f"Ask for the station last, {era}." in read.text


async def test_a_caller_sees_the_skills_that_its_permissions_allow(sales, module_home, served):
    store = ["token", "add", "team", "--tools", "weekly-*"]
    env = {"HOME": str(module_home), "MCP_NOTEBOOK_HOME": str(module_home / ".mcp-notebook")}
    token = CliRunner().invoke(main.app, store, env=env).stdout.strip()
    async with over_http(served.url, "auto", token=token) as client:
        assert list(await skills_of(client)) == ["weekly-report"]
        with pytest.raises(MCPError):
            await ask(client, "skills/get", Skill, uri="skill://forecast/SKILL.md")
        with pytest.raises(MCPError):
            await client.read_resource("skill://forecast/SKILL.md")


async def test_saved_markdown_cells_are_skills_as_of_the_last_save(home):
    path = home / "notes.ipynb"

    def save(*texts):
        cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)

    save("---\ntitle: A document\n---", "# Stations", MARKDOWN)
    with tool_kernel(home, "1", name="notes") as kernel:
        async with connected(home, "auto", "http") as client:
            assert list(await skills_of(client)) == ["stations"]
            save(
                MARKDOWN.replace("stations\n", "places\n", 1), "---\nname: A b\ndescription: x\n---"
            )
            assert list(await skills_of(client)) == ["stations"]
            said = kernel.ok("1").text
            assert "A Markdown cell is not offered as a skill: 'A b' cannot be a skill's" in said
            assert "'A b'" not in kernel.ok("1").text
            skills = await skills_of(client)
            while list(skills) != ["places"]:
                skills = await skills_of(client)
            kernel.ok("%%mcp_skill places\nFrom a cell.")
            while "From a cell" not in str(await skills_of(client)):
                pass
            path.write_text("{")
            kernel.ok("1")
            save()
            kernel.ok("1")
            assert "From a cell" in str(await skills_of(client))


async def test_two_notebooks_with_the_same_skill_serve_it_with_their_names(home):
    with (
        tool_kernel(home, REPORT, LIMITS, name="sales"),
        tool_kernel(home, REPORT, name="stock"),
    ):
        async with connected(home, "auto", "http") as client:
            listed = (await ask(client, "skills/list", Skills)).skills
            assert [skill["uri"] for skill in listed] == [
                "skill://sales/weekly-report/SKILL.md",
                "skill://stock/weekly-report/SKILL.md",
            ]
            assert len(listed[0]["resources"]) == 1
            with pytest.raises(MCPError, match=r"Read 'skill://sales.* or 'skill://stock"):
                await client.read_resource("skill://weekly-report/SKILL.md")


DOCSTRING = """
from mcp_notebook import mcp_skill

@mcp_skill(tags=["reports"])
def weekly_rain():
    '''Use this for the rain of a week.

    Call `rain` {number} times.
    '''

@mcp_skill
class Odd:
    '''---
    name: odd-days
    description: How to find odd days
    ---
    Look at the maximum first.
    '''
"""


@pytest.mark.parametrize("era", ERAS)
async def test_docstrings_are_skills_that_follow_their_cell(home, era):
    with tool_kernel(home, name="sales") as kernel:
        async with connected(home, era, "http") as client:
            digests = []
            for number in (1, 2):
                output = kernel.ok(DOCSTRING.replace("{number}", str(number)), cell="c")
                assert "Skill `weekly-rain`: Use this for the rain of a week." in output.text
                with anyio.fail_after(TIMEOUT):
                    while (
                        not (skills := await skills_of(client))
                        or skills["weekly-rain"]["resources"][0]["digest"] in digests
                    ):
                        pass
                digests.append(skills["weekly-rain"]["resources"][0]["digest"])
            assert skills["odd-days"]["frontmatter"]["description"] == "How to find odd days"
            (read,) = (
                await client.read_resource("skill://weekly-rain/SKILL.md", cache_mode="bypass")
            ).contents
            assert read.text.endswith("Use this for the rain of a week.\n\nCall `rain` 2 times.\n")
            kernel.ok("1", cell="c")
            with anyio.fail_after(TIMEOUT):
                while await skills_of(client):
                    pass


def skills_of_kernel(kernel):
    with Link(record_of(kernel)) as link:
        return [tool.name for tool in link.welcome.other_kinds]


def test_a_docstrings_skill_goes_with_its_object(home):
    with tool_kernel(home) as kernel:
        kernel.ok(DOCSTRING, cell="c")
        said = kernel.ok("Odd = 7").text
        assert "The skill 'odd-days/SKILL.md' is gone: `Odd` now holds something without" in said
        assert skills_of_kernel(kernel) == ["weekly-rain/SKILL.md"]
        kernel.ok("del weekly_rain")
        assert skills_of_kernel(kernel) == []
        kernel.ok(DOCSTRING, cell="c")
        kernel.ok("__import__('mcp_notebook').registry.remove('odd-days/SKILL.md')")
        kernel.ok("%unload_ext mcp_notebook\n%load_ext mcp_notebook")
        assert skills_of_kernel(kernel) == ["weekly-rain/SKILL.md"]
        kernel.ok("%reset -f")
        assert skills_of_kernel(kernel) == []


async def test_docstrings_decorated_before_the_extension_is_loaded_are_skills(home):
    with live_kernel(home) as kernel:
        kernel.ok(DOCSTRING)
        kernel.ok(LOAD)
        async with connected(home, "auto", "http") as client:
            assert list(await skills_of(client)) == ["weekly-rain", "odd-days"]


def test_what_has_no_docstring_cannot_be_a_skill(sales):
    said = sales.run("from mcp_notebook import mcp_skill\n@mcp_skill\ndef empty(): ...")
    assert "needs a docstring" in said.text
    said = sales.run("@mcp_skill(descripton='x')\ndef empty(): 'It.'")
    assert "Did you mean `description`?" in said.text
