import socket

import pytest
from bridges import NEEDS_TWO_USERS, hold_port_of_another_user

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
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_listener_is_found_at_whatever_address_takes_the_connection(address):
    host = "::1" if ":" in address else "127.0.0.1"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        assert find_port_use(host, listener.getsockname()[1]) == "own"


@NEEDS_TWO_USERS
def test_a_port_that_another_user_listens_on_is_not_ours():
    with hold_port_of_another_user() as port:
        assert find_port_use("127.0.0.1", port) == "foreign"
