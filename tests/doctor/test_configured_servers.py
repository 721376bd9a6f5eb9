"""What `doctor` reads from clients' settings."""

import sys
from pathlib import Path

import pytest

from mcp_notebook.clients.client import Endpoint, Launch, Machine, Remote
from mcp_notebook.clients.installation import apply_change, plan_installation
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.servers import build_connection
from mcp_notebook.doctor.configured_servers import ConfiguredServer, read_servers
from mcp_notebook.settings.settings import Settings

LAUNCH = Launch(
    command="/env/bin/python",
    arguments=("-P", "-m", "mcp_notebook", "stdio", "--read-only"),
    env={"MCP_NOTEBOOK_HOME": "/elsewhere"},
    runs_notebooks=False,
)
ENDPOINT = Endpoint(url="http://127.0.0.1:9/mcp", token_file=None, token_place="")


@pytest.fixture
def machine(tmp_path):
    return Machine(platform="linux", home=tmp_path, folder=tmp_path, env={})


def install(machine, client, server, name="notebook"):
    file = client.find_file(machine)
    settings = Settings(home=machine.home / ".mcp-notebook")
    apply_change(plan_installation(client, file, name, server), settings)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_what_install_writes_is_read_again(machine, client):
    install(machine, client, LAUNCH, "rain")
    (server,) = read_servers(client, machine)
    assert server.name == "rain"
    assert server.words == ("/env/bin/python", *LAUNCH.arguments)
    assert server.arguments == ("stdio", "--read-only")
    assert server.find_home(machine) == Path("/elsewhere")
    assert (server.url, server.is_off) == (None, False)
    repair = f"`mcp-notebook install {client.name} --name rain --replace --read-only`"
    assert server.format_repair() == repair


@pytest.mark.parametrize(
    "client",
    [client for client in CLIENTS.values() if client.header_from != "nowhere"],
    ids=lambda client: client.name,
)
def test_an_address_is_read_with_the_place_of_its_token(machine, client):
    install(machine, client, ENDPOINT)
    (server,) = read_servers(client, machine)
    assert server.url == ENDPOINT.url
    assert "MCP_NOTEBOOK_TOKEN" in server.headers["Authorization"]
    words = f"mcp-notebook install {client.name} --http"
    assert server.format_repair() == f"`{words} --replace`"


def test_a_client_waits_as_long_as_its_settings_or_its_maker_says(machine):
    limits = {}
    for name in ("claude-code", "codex", "cursor"):
        install(machine, CLIENTS[name], LAUNCH)
        limits[name] = read_servers(CLIENTS[name], machine)[0].start_limit
    assert limits == {"claude-code": 30, "codex": 10, "cursor": 60}
    file = CLIENTS["codex"].find_file(machine)
    file.write_text(file.read_text() + "startup_timeout_sec = 42\n")
    assert read_servers(CLIENTS["codex"], machine)[0].start_limit == 42


def test_the_limit_in_a_clients_settings_is_read_in_the_units_of_that_client(machine):
    """Gemini CLI counts milliseconds, as its documentation says."""
    written = {
        "gemini": {"timeout": 42_000},
        "codex": {"startup_timeout_sec": 42},
    }
    assert written.keys() == {name for name, client in CLIENTS.items() if client.start_member}
    for name, entry in written.items():
        file = CLIENTS[name].find_file(machine)
        server = ConfiguredServer(
            client=CLIENTS[name], file=file, is_usual_file=True, name="notebook", entry=entry
        )
        assert server.start_limit == 42


def test_servers_of_others_are_left_alone_and_one_of_the_name_is_ours(machine):
    file = CLIENTS["cursor"].find_file(machine)
    file.parent.mkdir()
    file.write_text(
        '{"mcpServers": {"other": {"command": "npx", "args": ["-y", "mcp"]}, "notebook": {},'
        ' "hand": {"command": "mcp-notebook", "args": ["stdio"]}, "odd": 3}}'
    )
    servers = read_servers(CLIENTS["cursor"], machine)
    assert [server.name for server in servers] == ["notebook", "hand"]


def test_the_repair_of_a_connection_has_its_address_and_where_its_token_is(machine):
    remote = Remote(address="https://hub.example.org/user/ada", token_source="env:HUB_TOKEN")
    install(machine, CLIENTS["zed"], build_connection(remote))
    (server,) = read_servers(CLIENTS["zed"], machine)
    assert server.words[0] == sys.executable
    assert server.format_repair() == (
        "`mcp-notebook install zed --replace --url https://hub.example.org/user/ada "
        "--token-file env:HUB_TOKEN`"
    )


def test_a_command_is_started_where_its_entry_or_its_client_says(machine, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    machine = Machine(platform="linux", home=tmp_path, folder=project, env={})
    for name, folder in (("mcp.json", project), ("cursor", tmp_path)):
        install(machine, CLIENTS[name], LAUNCH)
        assert read_servers(CLIENTS[name], machine)[0].find_folder(machine) == folder
    file = CLIENTS["cursor"].find_file(machine)
    file.write_text(file.read_text().replace('"command"', '"cwd": "/srv", "command"'))
    assert read_servers(CLIENTS["cursor"], machine)[0].find_folder(machine) == Path("/srv")
