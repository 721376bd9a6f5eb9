"""The card for Binder and a JupyterHub: the right address, and never a token."""

import json
import shlex
from pathlib import Path

import pytest
from live import live_kernel

from mcp_notebook.kernel.notebook.public_address import (
    build_address_card,
    describe_access,
    find_public_address,
)

HUB = {
    "JUPYTERHUB_SERVICE_PREFIX": "/hubs/user/ada/",
    "JUPYTERHUB_BASE_URL": "/hubs/",
    "JPY_MCP_PATH": "/hubs/user/ada/mcp-notebook",
}
BINDER = {
    "JUPYTERHUB_SERVICE_PREFIX": "/user/x-y-1/",
    "BINDER_REPO_URL": "https://github.com/x/y",
    "BINDER_LAUNCH_HOST": "https://mybinder.org/",
    "JPY_MCP_PATH": "/user/x-y-1/mcp-notebook",
}


def text_of(env):
    return build_address_card(find_public_address(env))["text/plain"]


@pytest.mark.parametrize(
    "env", [{}, {"JPY_MCP_PATH": "/mcp-notebook"}, {"JUPYTERHUB_HOST": "https://a"}]
)
def test_a_machine_of_ones_own_has_none(env):
    assert find_public_address(env) is None


@pytest.mark.parametrize(
    ("env", "origin"),
    [
        ({"JUPYTERHUB_PUBLIC_URL": "https://hub.example.org/hubs/user/ada/"}, "hub.example.org"),
        (
            {"JUPYTERHUB_PUBLIC_URL": "", "JUPYTERHUB_HOST": "https://ada.example.org"},
            "ada.example",
        ),
        ({"JUPYTERHUB_PUBLIC_URL": "no address"}, "HOST"),
        ({}, "HOST"),
    ],
)
def test_a_hub_says_its_host_or_the_page_does(env, origin):
    text = text_of(HUB | env)
    assert f'"url": "https://{origin}' in text
    assert "/hubs/user/ada/mcp-notebook" in text
    assert "/hubs/hub/token" in text


def test_the_settings_and_the_line_for_a_terminal_have_the_address_and_no_token():
    text = text_of(BINDER)
    assert text.startswith("On Binder, connect an assistant on your own computer in three steps:")
    (settings,) = (json.loads(line) for line in text.splitlines() if "mcpServers" in line)
    assert settings["mcpServers"]["binder"] == {
        "type": "http",
        "url": "https://HOST/user/x-y-1/mcp-notebook",
        "headers": {"Authorization": "Bearer TOKEN"},
    }
    assert text.endswith(
        "    mcp-notebook install claude-desktop --url https://HOST/user/x-y-1/mcp-notebook "
        "--token-file notebook.token"
    )


def test_a_server_without_the_extension_is_told_from_one_that_has_it():
    env = {name: value for name, value in HUB.items() if name != "JPY_MCP_PATH"}
    text = text_of(env)
    assert "cannot reach these tools yet" in text
    assert "and restart the server." in text


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            HUB,
            "other computers reach it at /hubs/user/ada/mcp-notebook on this server",
        ),
        (
            BINDER | {"JUPYTERHUB_PUBLIC_URL": "https://h.org/"},
            "at https://h.org/user/x-y-1/mcp-notebook: ",
        ),
        (HUB | {"JPY_MCP_PATH": ""}, "cannot reach it yet: `%mcp status` says why."),
    ],
)
def test_who_serves_it_is_told_how_the_notebook_is_reached_from_outside(env, said):
    env = {name: value for name, value in env.items() if value}
    assert said in describe_access(find_public_address(env))


def test_a_shell_takes_the_line_as_it_stands_whatever_the_server_is_called():
    env = HUB | {"JPY_MCP_PATH": "/user/a b;touch x$(id)/mcp-notebook"}
    line = text_of(env).rpartition("\n")[2].strip()
    assert shlex.split(line)[4] == "https://HOST/user/a b;touch x$(id)/mcp-notebook"


def test_hostile_variables_do_not_become_markup():
    env = HUB | {
        "JUPYTERHUB_PUBLIC_URL": "https://<script>/",
        "JPY_MCP_PATH": "/'><b>/mcp-notebook",
    }
    html = build_address_card(find_public_address(env))["text/html"]
    assert "<script>/" not in html
    assert "<b>" not in html


def test_the_page_says_what_the_card_says():
    page = Path(__file__).parents[3] / "docs" / "guides" / "remote-notebooks.md"
    env = BINDER | {"JPY_MCP_PATH": "/user/ada-rain-1a2b3c/mcp-notebook"}
    assert text_of(env) in page.read_text(encoding="utf-8")


def test_loading_the_extension_shows_the_card_there_and_nowhere_else(home):
    with live_kernel(home, env=BINDER) as kernel:
        (card,) = kernel.ok("%load_ext mcp_notebook").displays
        assert "https://HOST/user/x-y-1/mcp-notebook" in card["text/plain"]
        assert kernel.ok("%reload_ext mcp_notebook").displays == []
        (tool,) = kernel.ok("%%mcp_tool\ndef f(a: int): return a").displays
        status = kernel.ok("%mcp status")
        assert status.displays[1:] == [card]
        for shown in (*tool.values(), *status.displays[0].values()):
            assert "mcp-notebook install" not in shown
            assert "stdio" not in shown
