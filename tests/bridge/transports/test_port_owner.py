import socket

import pytest
from bridges import CONNECTED, NEEDS_TWO_USERS, hold_local_port, hold_port_of_another_user

from mcp_notebook.bridge.transports import port_owner
from mcp_notebook.bridge.transports.http import open_listener
from mcp_notebook.bridge.transports.port_owner import find_port_use, is_free_port, is_own_port
from mcp_notebook.settings.settings import Settings


def test_a_port_that_we_listen_on_is_ours_until_we_leave_it():
    with open_listener(Settings(port=0)) as listener:
        port = listener.getsockname()[1]
        assert is_own_port("127.0.0.1", port)
        assert is_own_port("localhost", port)
        assert not is_free_port("127.0.0.1", port)
    assert not is_own_port("127.0.0.1", port)
    assert is_free_port("127.0.0.1", port)


def test_a_port_of_another_address_is_not_the_one_that_was_asked_for():
    with open_listener(Settings(port=0)) as listener:
        assert not is_own_port("127.0.0.2", listener.getsockname()[1])


def test_a_name_that_leads_nowhere_is_not_ours():
    assert not is_own_port("127.0.0.1.invalid", 8791)


ADDRESSES = ["127.0.0.1", "0.0.0.0", "::1", "::"]


@pytest.mark.slow
@pytest.mark.parametrize("has_list", [True, False])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_listener_is_found_at_whatever_address_takes_the_connection(
    monkeypatch, has_list, address
):
    """Also where the system lists no sockets of others."""
    if not has_list:
        monkeypatch.setattr(port_owner, "_SOCKETS", ("/absent",))
    host = "::1" if ":" in address else "127.0.0.1"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        port = listener.getsockname()[1]
        assert find_port_use(host, port) == "own"
        assert not port_owner._is_connection_only(host, port)


@pytest.mark.slow
@pytest.mark.parametrize("has_list", [True, False])
def test_the_local_end_of_a_connection_is_not_a_listener_unless_one_exists(monkeypatch, has_list):
    if not has_list:
        monkeypatch.setattr(port_owner, "_SOCKETS", ("/absent",))
    with hold_local_port() as port:
        assert find_port_use("127.0.0.1", port) == "connection"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            served, _ = listener.accept()
            with served:  # its local port is the listener's
                assert find_port_use("127.0.0.1", port) == "own"
                assert find_port_use("127.0.0.1", client.getsockname()[1]) == "connection"


def test_a_list_of_sockets_in_another_form_is_none(monkeypatch, tmp_path):
    (tmp_path / "tcp").write_text("sl local_address\n0: ???\n")
    monkeypatch.setattr(port_owner, "_SOCKETS", (str(tmp_path / "tcp"),))
    with hold_local_port() as port:
        assert find_port_use("127.0.0.1", port) == "connection"


@pytest.mark.slow
@NEEDS_TWO_USERS
@pytest.mark.parametrize("has_list", [True, False])
def test_another_user_who_listens_is_told_from_one_with_a_connection(monkeypatch, has_list):
    if not has_list:
        monkeypatch.setattr(port_owner, "_SOCKETS", ("/absent",))
    with hold_port_of_another_user() as port:
        assert find_port_use("127.0.0.1", port) == "foreign"
    with hold_port_of_another_user(CONNECTED) as port:
        assert find_port_use("127.0.0.1", port) == "connection"


@NEEDS_TWO_USERS
def test_a_port_that_another_user_listens_on_is_not_ours():
    with hold_port_of_another_user() as port:
        assert not is_own_port("127.0.0.1", port)
