"""A notebook whose kernel Jupyter ends while its server lives, as it does with idle kernels."""

from contextlib import asynccontextmanager

import anyio.to_thread
import pytest
from clients import text_of
from forked_command import list_words
from jupyter_servers import TOKEN, jupyter_server
from listing import KNOWN, list_tools
from mcp import Client, StdioServerParameters
from notebook_files import write_notebook

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CELLS = (
    "%load_ext mcp_notebook",
    "with open('runs.txt', 'a') as file:\n    print('run', file=file)",
    '%%mcp_tool\ndef double(n: int) -> int:\n    "Double."\n    return 2 * n',
)


@pytest.fixture
def jupyter(home):
    """A Jupyter Server with a notebook that nobody has open."""
    write_notebook(home / "rain.ipynb", *CELLS)
    with jupyter_server(home) as server:
        yield server


@asynccontextmanager
async def connected(server, era):
    words = ("connect", f"{server.url}lab/tree/rain.ipynb", "--token-file", "env:JUPYTER", "--run")
    program, *arguments = list_words(*words)
    env = {"HOME": str(server.home), "JUPYTER": TOKEN}
    command = StdioServerParameters(command=program, args=arguments, env=env)
    async with Client(command, mode=era, client_info=KNOWN) as client:
        yield client


def end_kernel(server):
    (kernel_id,) = server.states()
    server.http.delete(f"api/kernels/{kernel_id}").raise_for_status()


async def test_the_next_call_runs_the_notebook_again(jupyter, era):
    async with connected(jupyter, era) as client:
        assert text_of(await client.call_tool("double", {"n": 4})) == "8"
        await anyio.to_thread.run_sync(end_kernel, jupyter)
        assert text_of(await client.call_tool("double", {"n": 5})) == "10"
    assert (jupyter.home / "runs.txt").read_text() == "run\nrun\n"


async def test_the_next_client_runs_the_notebook_again(jupyter):
    for _ in range(2):
        async with connected(jupyter, "auto") as client:
            assert {tool.name for tool in await list_tools(client)} == {"double"}
        await anyio.to_thread.run_sync(end_kernel, jupyter)
    assert (jupyter.home / "runs.txt").read_text() == "run\nrun\n"
