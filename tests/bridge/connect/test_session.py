"""A remote bridge that is killed and comes back at its address, under a client that stays."""

import signal
from contextlib import contextmanager

import anyio
import pytest
from clients import COMMAND, Changes, http_bridge, text_of
from live import TIMEOUT, find_free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
def port():
    return find_free_port()


@contextmanager
def bridge_at(home, port, how=signal.SIGTERM):
    """Run a bridge that will be ended in this way: a forked one that is killed ends a bit later."""
    command = COMMAND if how == signal.SIGKILL else None
    with http_bridge(home, "--port", str(port), command=command) as served:
        yield served


async def end(served, how):
    served.process.send_signal(how)
    await anyio.to_thread.run_sync(served.process.wait, TIMEOUT)


@pytest.mark.parametrize(
    ("era", "how"),
    [
        ("legacy", signal.SIGTERM),
        pytest.param("auto", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("legacy", signal.SIGKILL, marks=pytest.mark.slow),
        pytest.param("auto", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
async def test_a_bridge_that_comes_back_has_its_client_again_which_lists_anew(
    sales, port, era, how, connect_to
):
    changes = Changes()
    url = f"http://127.0.0.1:{port}/mcp"
    with bridge_at(sales.home, port, how) as first:
        async with (
            connect_to(url, era, message_handler=changes.handle) as client,
            changes.watch(client, era),
        ):
            assert text_of(await client.call_tool("add", {"a": 1})) == "2"
            await end(first, how)
            with bridge_at(sales.home, port):
                assert text_of(await client.call_tool("add", {"a": 2})) == "3"
                await changes.wait()
                assert "add" in [tool.name for tool in (await client.list_tools()).tools]
