import pytest
from bridges import (
    BOUND,
    NEEDS_TWO_USERS,
    TOKEN,
    hold_port_of_another_user,
)
from live import find_free_port

from mcp_notebook.bridge.access.caller import EVERYTHING
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.transports import known_ports
from mcp_notebook.bridge.transports.http import open_listener
from mcp_notebook.bridge.transports.known_ports import (
    choose_token,
    read_last_port,
    remember_port,
    write_last_port,
)
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.private_files import write_private
from mcp_notebook.settings.settings import Settings


@pytest.fixture
def settings(home):
    """Settings with a token in its file."""
    settings = Settings(home=home / "mcp-notebook")
    write_private(settings.token_path, TOKEN)
    return settings


def _choose(settings, token=TOKEN, port=8791, usual=8791):
    notices = []
    token = choose_token(settings, token, port, usual=usual, notices=notices)
    return token, notices


def test_the_port_to_use_again_is_the_last_one(settings):
    assert read_last_port(settings) is None
    write_last_port(settings, 9000)
    assert read_last_port(settings) == 9000


@NEEDS_TWO_USERS
def test_a_port_that_was_served_once_and_that_another_user_has_now_makes_a_new_token(settings):
    """Although the port that is usual is free: some client may still be set up for the other."""
    with hold_port_of_another_user() as taken:
        remember_port(settings, TOKEN, taken)
        token, (notice,) = _choose(settings)
        assert token == settings.token_path.read_text().strip() != TOKEN
        assert notice.startswith(f"Port {taken} is in use, but not by you: ")
        assert "this one has port 8791 and a new token" in notice
        assert _choose(settings, token) == (token, [])  # no client has it for that port


@NEEDS_TWO_USERS
def test_a_port_at_which_another_user_may_listen_any_moment_makes_a_new_token(settings):
    with hold_port_of_another_user(BOUND) as port:
        remember_port(settings, TOKEN, port)
        assert _choose(settings)[0] != TOKEN


@NEEDS_TWO_USERS
def test_the_tokens_of_other_clients_are_void_too_until_they_are_rotated(settings):
    store = TokenStore(settings.tokens_file)
    store.add("assistant", EVERYTHING)
    with hold_port_of_another_user() as taken:
        remember_port(settings, TOKEN, taken)
        _, (_, notice) = _choose(settings)
    assert notice == (
        "The tokens of other clients are also void: assistant. Make new ones with "
        "`mcp-notebook token rotate NAME`."
    )
    assert [record.is_void for record in store.read()] == [True]


@NEEDS_TWO_USERS
def test_a_token_that_cannot_be_replaced_is_an_error_until_it_is_another_one(settings):
    given = Settings(home=settings.home, token=TOKEN)
    with hold_port_of_another_user() as taken:
        remember_port(given, TOKEN, taken)
        with pytest.raises(SettingsError, match=f"Port {taken} .* choose a new one yourself"):
            _choose(given)
        assert _choose(given, "another-token-of-the-user")[1] == []


@NEEDS_TWO_USERS
def test_a_port_that_the_system_chose_is_not_remembered(settings):
    with hold_port_of_another_user() as taken:
        remember_port(Settings(home=settings.home, port=0), TOKEN, taken)
        assert _choose(settings) == (TOKEN, [])


def test_a_port_of_the_user_keeps_the_token(settings):
    with open_listener(Settings(port=0)) as other:
        port = other.getsockname()[1]
        remember_port(settings, TOKEN, port)
        assert _choose(settings) == (TOKEN, [])
        token, (notice,) = _choose(settings, usual=port)
    assert token == TOKEN
    assert notice.startswith(f"Port {port} is in use by another process of yours")


def test_a_bounded_number_of_ports_is_remembered_those_of_the_last_time(settings):
    for port in [8791, *range(9000, 9000 + known_ports.MAX_PORTS - 1), 8791, 9999]:
        remember_port(settings, TOKEN, port)
    ports = [int(line.split()[1]) for line in (settings.home / "ports").read_text().splitlines()]
    assert len(ports) == known_ports.MAX_PORTS
    assert ports[-2:] == [8791, 9999]
    assert TOKEN not in (settings.home / "ports").read_text()


@pytest.mark.parametrize("content", ["", "a b c", "\0", "x" * 100_000])
def test_a_bad_file_is_none(settings, content):
    write_private(settings.home / "ports", content)
    assert _choose(settings) == (TOKEN, [])
    remember_port(settings, TOKEN, find_free_port())
    assert _choose(settings) == (TOKEN, [])


def test_a_home_that_cannot_be_written_to_serves_all_the_same(home):
    (home / "file").write_text("no folder")
    remember_port(Settings(home=home / "file"), TOKEN, 9000)
