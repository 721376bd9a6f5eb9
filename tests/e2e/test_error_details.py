"""What clients get of a failing tool's error: all of it, its message, or only that it failed."""

import json

import pytest
from clients import TOKEN, answer_of, connected, http_bridge, over_http, text_of
from live import kernel_with
from mcp import Client
from raw_calls import WAYS, post_call, post_older_call
from task_client import TasksExtension

from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.settings.settings import Settings

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
kernel = kernel_with(TOOLS, LATER, FORKED, MASKED, OPEN)
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
async def test_the_user_on_this_machine_gets_everything(connect, era, transport):
    async with connect(era, transport) as client:
        text = text_of(await client.call_tool("fail", {}))
        assert "cannot read /home/ann/secret/rain.csv" in text
        assert 'password = "hunter2"' in text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("kernel")
async def test_a_guest_gets_type_and_message_in_both_ways_and_eras(served, guest, way):
    for name in ("fail", "fail_apart", "count", "tell", "mask", "show"):
        modern = answer_of(await post_call(served.url, name, way=way, token=guest))["result"]
        older = await post_older_call(served.url, name, way=way, token=guest)
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


@pytest.mark.usefixtures("kernel")
async def test_a_guests_task_has_the_same_error(served, guest):
    async with over_http(served.url, "auto", token=guest, extensions=[TasksExtension()]) as client:
        assert text_of(await client.call_tool("fail_later", {})) == SHORT


async def test_the_author_sees_everything_in_the_notebook_and_in_the_audit_log(
    kernel, module_home, served, guest
):
    await post_call(served.url, "fail", token=guest)
    assert "/home/ann/secret/rain.csv" in kernel.ok("%mcp log fail -n 1").text  # the first line
    assert 'password = "hunter2"' in kernel.ok("%mcp call fail").text
    assert "hunter2" in kernel.ok("%mcp call mask").text
    audit = (module_home / ".mcp-notebook" / "audit.jsonl").read_text().splitlines()
    mine = [line for line in map(json.loads, audit) if line.get("caller") == "guest"]
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
