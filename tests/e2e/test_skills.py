"""Skills of a notebook, in cells and in its Markdown, as real clients in both eras get them."""

import hashlib

import anyio
import mcp_types as types
import pytest
import yaml
from clients import ERAS, Changes, connected, over_http, tool_kernel
from live import TIMEOUT
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
async def test_what_a_client_reads_of_a_skill_fits_its_entry_also_while_a_cell_runs(sales, connect):
    async with connect("auto", "http") as client:
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


async def test_the_folder_of_a_skill_is_read_level_by_level(sales, connect):
    async with connect("auto", "http") as client:
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
            ("resources/directory/read", Directory, "skill://weekly-report/", "not a folder"),
            (
                "resources/directory/read",
                Directory,
                "skill://forecast/SKILL.md",
                "`resources/read`",
            ),
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


async def test_docstrings_are_skills_that_follow_their_cell(home):
    with tool_kernel(home, name="sales") as kernel:
        async with connected(home, "auto", "http") as client:
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
