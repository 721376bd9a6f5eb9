"""A remote bridge that is killed and comes back at its address, under a client that stays."""

import signal
from contextlib import contextmanager

import anyio
import pytest
from clients import COMMAND, Changes, http_bridge, text_of
from live import TIMEOUT, find_free_port
from mcp.shared.exceptions import MCPError
from watchfiles import awatch

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


@pytest.mark.parametrize("era", ["legacy", pytest.param("auto", marks=pytest.mark.slow)])
async def test_a_call_that_the_bridge_takes_with_it_is_an_error_that_says_so(
    sales, port, era, connect_to
):
    url = f"http://127.0.0.1:{port}/mcp"
    sleeps = sales.home / "sleeps"
    sleeps.unlink(missing_ok=True)
    with bridge_at(sales.home, port) as served:
        async with connect_to(url, era) as client, anyio.create_task_group() as tasks:

            async def call():
                with pytest.raises(MCPError, match=r"connection to http.*'sleep' may have run"):
                    await client.call_tool("sleep", {"seconds": 600})

            tasks.start_soon(call)
            with anyio.fail_after(TIMEOUT):
                async for _ in awatch(sleeps.parent, rust_timeout=100, yield_on_timeout=True):
                    if sleeps.exists():
                        break
            await end(served, signal.SIGKILL)
