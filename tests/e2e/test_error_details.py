"""What clients get of a failing tool's error: all of it, its message, or only that it failed."""

import json
import re

import pytest
from audit_lines import read_ends
from clients import ERAS, TOKEN, answer_of, connected, http_bridge, over_http, text_of
from live import kernel_with
from mcp import Client
from mcp.shared.exceptions import MCPError
from oauth_issuer import serve_issuer
from raw_calls import post_call, post_older_call
from task_client import TasksExtension

from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.server.own_tools.meta_tools import CALL, RESULT
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.missing_tools import READ_RESOURCE

pytestmark = pytest.mark.anyio

TOOLS = """%%mcp_tool
from mcp_notebook import ToolError

def fail() -> str:
    "Fails with a path."
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")

def tell() -> str:
    "Fails in the author's words."
    raise ToolError("No rain in /data/2015: ask for 2014.")

def count():
    "A generator that fails."
    yield 1
    open("/home/ann/secret/snow.csv")
"""
LATER = """%%mcp_tool --task
def fail_later() -> str:
    "Fails, as a task."
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")
"""
FORKED = """%%mcp_tool --run fork --read-only
def fail_apart() -> str:
    "Fails in a copy of the kernel."
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")
"""
MASKED = """%%mcp_tool --errors masked
def mask() -> str:
    "Says only that it failed."
    raise ValueError("hunter2")
"""
OPEN = """%%mcp_tool --errors full
def show() -> str:
    "Says everything to everybody."
    raise ValueError("hunter2")
"""
FAILS_LATE = """%%mcp_tool --task
async def fail_late() -> str:
    "Fails after its client was given a handle."
    import asyncio
    await asyncio.sleep(0.3)
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")
"""
KINDS = """
from mcp_notebook import mcp_prompt, mcp_resource

@mcp_prompt
def ask_for() -> str:
    "A prompt that fails."
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")

@mcp_prompt(errors="masked")
def ask_nothing() -> str:
    "A prompt that says only that it failed."
    raise ValueError("hunter2")

@mcp_resource("rain://{year}")
def rain(year: int) -> str:
    "A resource that fails."
    password = "hunter2"; raise ValueError("cannot read /home/ann/secret/rain.csv")
"""
kernel = kernel_with(TOOLS, LATER, FORKED, MASKED, OPEN, FAILS_LATE, KINDS)
SHORT = "ValueError: cannot read …/rain.csv"
SECRETS = ("hunter2", "/home/ann", "Traceback", "Cell In")


@pytest.fixture(scope="module")
def guest(module_home):
    """Return the token of a guest."""
    return TokenStore(Settings(home=module_home / ".mcp-notebook").tokens_file).add(
        "guest", EVERYTHING
    )


def has_secrets(text):
    return any(secret in text for secret in SECRETS)


@pytest.mark.smoke
@pytest.mark.usefixtures("kernel")
async def test_the_user_on_this_machine_gets_everything(connect):
    async with connect("auto", "http") as client:
        text = text_of(await client.call_tool("fail", {}))
        assert "cannot read /home/ann/secret/rain.csv" in text
        assert 'password = "hunter2"' in text


@pytest.mark.usefixtures("kernel")
async def test_a_guest_gets_type_and_message_in_both_eras(served, guest):
    for name in ("fail", "fail_apart", "count", "tell", "mask", "show"):
        modern = answer_of(await post_call(served.url, name, token=guest))["result"]
        older = await post_older_call(served.url, name, token=guest)
        for result in (modern, older):
            assert result["isError"]
            text = json.dumps(result, ensure_ascii=False)
            assert has_secrets(text) == (name == "show")
            said = result["content"][-1]["text"]
            assert {
                "fail": SHORT,
                "fail_apart": SHORT,
                "tell": "No rain in /data/2015: ask for 2014.",
            }.get(name, said) == said
            assert name != "count" or "'…/snow.csv'" in said
            assert name != "mask" or said.startswith("The tool 'mask' failed. Its error is not")


async def test_the_author_sees_everything_in_the_notebook_and_in_the_audit_log(
    kernel, module_home, served, guest
):
    await post_call(served.url, "fail", token=guest)
    assert "/home/ann/secret/rain.csv" in kernel.ok("%mcp log fail -n 1").text  # the first line
    assert 'password = "hunter2"' in kernel.ok("%mcp call fail").text
    assert "hunter2" in kernel.ok("%mcp call mask").text
    audit = read_ends(module_home / ".mcp-notebook" / "audit.jsonl")
    mine = [line for line in audit if line.get("caller") == "guest"]
    assert any('password = "hunter2"' in line.get("error", "") for line in mine)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0", "--insecure"), SHORT),
        (("--errors", "masked"), "The tool 'fail' failed. Its error is not shown"),
        (("--errors", "short"), SHORT),
        (("--host", "0.0.0.0", "--insecure", "--errors", "full"), "hunter2"),
    ],
    ids=["for other machines", "masked", "short", "full"],
)
@pytest.mark.usefixtures("kernel")
async def test_the_setting_and_the_address_decide_for_the_owners_token(
    module_home, arguments, said
):
    with http_bridge(module_home, *arguments) as served:
        url = served.url.replace("0.0.0.0", "127.0.0.1")
        result = answer_of(await post_call(url, "fail", token=TOKEN))["result"]
        assert said in result["content"][-1]["text"]


@pytest.mark.usefixtures("kernel")
async def test_the_setting_holds_over_stdio(module_home):
    async with connected(module_home, "auto", "stdio", "--errors", "short") as client:
        assert isinstance(client, Client)
        assert text_of(await client.call_tool("fail", {})) == SHORT
        assert "hunter2" in text_of(await client.call_tool("show", {}))
    async with connected(module_home, "auto", "stdio", "--errors", "masked") as client:
        said = text_of(await client.call_tool("fail", {}))
        assert said.startswith("The tool 'fail' failed. Its error is not shown")
        assert "hunter2" in text_of(await client.call_tool("show", {}))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.usefixtures("kernel")
async def test_a_guest_gets_no_more_of_prompts_and_resources_that_fail(served, guest, era):
    async with over_http(served.url, era, token=guest) as client:
        with pytest.raises(MCPError) as prompt:
            await client.get_prompt("ask_for", {})
        with pytest.raises(MCPError) as masked:
            await client.get_prompt("ask_nothing", {})
        with pytest.raises(MCPError) as resource:
            await client.read_resource("rain://2015")
    for raised in (prompt, masked, resource):
        assert not has_secrets(str(raised.value.error))
    assert prompt.value.error.message == SHORT
    assert masked.value.error.message.startswith("The prompt 'ask_nothing' failed. Its error is")
    assert resource.value.error.message == SHORT


@pytest.mark.usefixtures("kernel")
async def test_a_guest_gets_no_more_through_the_meta_tools(module_home, guest):
    env = {"MCP_NOTEBOOK_TASK_AFTER": "0.1"}
    with http_bridge(module_home, "--meta-tools", env=env) as served:
        async with over_http(served.url, "auto", token=guest) as client:

            async def call(name):
                return text_of(await client.call_tool(CALL, {"name": name, "arguments": {}}))

            assert await call("fail") == SHORT
            assert (await call("mask")).startswith("The tool 'mask' failed. Its error is not")
            assert "hunter2" in await call("show")
            handle = re.search("handle '([^']+)'", await call("fail_late"))[1]
            result = await client.call_tool(RESULT, {"handle": handle})
            assert text_of(result) == SHORT
            read = await client.call_tool(READ_RESOURCE, {"uri": "rain://2015"})
            assert text_of(read) == SHORT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), SHORT),
        (("--errors", "masked"), "The tool 'fail' failed. Its error is not shown"),
        pytest.param(("--errors", "full"), "hunter2", marks=pytest.mark.slow),
    ],
    ids=["by default", "masked", "full"],
)
@pytest.mark.usefixtures("kernel")
async def test_a_user_of_an_issuer_is_a_guest_whom_the_setting_tells_more_or_less(
    module_home, tmp_path, options, said
):
    with serve_issuer() as issuer:
        file = tmp_path / "oauth.toml"
        file.write_text(f'issuer = "{issuer.url}"\n[scopes."notebook:all"]\n')
        with http_bridge(module_home, "--oauth-file", str(file), *options) as served:
            token = issuer.make_token(aud=served.url, scope="notebook:all", sub="ann")
            async with over_http(served.url, "auto", token=token) as client:
                assert said in text_of(await client.call_tool("fail", {}))
                masked = text_of(await client.call_tool("mask", {}))
                assert masked.startswith("The tool 'mask' failed. Its error is not")
                assert "hunter2" in text_of(await client.call_tool("show", {}))


@pytest.mark.usefixtures("kernel")
async def test_a_guests_task_has_the_same_error(served, guest):
    async with over_http(served.url, "auto", token=guest, extensions=[TasksExtension()]) as client:
        assert text_of(await client.call_tool("fail_later", {})) == SHORT
