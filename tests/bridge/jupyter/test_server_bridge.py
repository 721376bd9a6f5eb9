"""The bridge behind a Jupyter Server, as a process; what it serves is in tests/jupyter."""

import json
import signal
import stat
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from bridges import PING, TOKEN, bridge
from forked_command import list_words
from kernel_records import make_record
from kernel_stand_ins import peer, welcome
from msgspec import structs

from mcp_notebook.bridge.access.caller import OWNER, SCOPE_KEY
from mcp_notebook.bridge.jupyter import server_bridge
from mcp_notebook.bridge.jupyter.server_kernels import ServerKernels
from mcp_notebook.discovery.records import remove_record, write_record
from mcp_notebook.http_headers import RUNS_HEADER
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


MODULE = "mcp_notebook.cli.jupyter_bridge"


@contextmanager
def _server_bridge(home):
    env = {"MCP_NOTEBOOK_TOKEN": TOKEN, "TMPDIR": str(home), "MCP_NOTEBOOK_CERTFILE": "/none.pem"}
    options = {"command": list_words(module=MODULE), "stdin": subprocess.PIPE, "bufsize": 0}
    with bridge(home, env=env, **options) as running:
        yield running, Path(json.loads(running.line())["socket"])


def test_it_listens_in_a_folder_of_the_users_own_and_only_to_who_has_its_token(home):
    with _server_bridge(home) as (running, path):
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        transport = httpx2.HTTPTransport(uds=str(path))
        with httpx2.Client(transport=transport, base_url="http://localhost") as http:
            assert http.post("/mcp").status_code == 401
            http.headers["Authorization"] = f"Bearer {TOKEN}"
            running.send(b"[]")
            assert (
                http.post("/mcp/sales")
                .json()["error"]
                .endswith("also of those that are opened later.")
            )
            assert http.post("/mcp", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("how", ["stdin", "signal"])
def test_it_ends_with_its_server_or_a_signal_and_leaves_nothing(home, how):
    with _server_bridge(home) as (running, path):
        if how == "stdin":
            running.process.stdin.close()
        else:
            running.process.send_signal(signal.SIGTERM)
        assert running.wait() == 0
        assert not path.parent.exists()


def test_a_setting_that_cannot_be_used_is_named(home):
    env = {"MCP_NOTEBOOK_LIMITS": "many"}
    with bridge(home, command=list_words(module=MODULE), env=env) as running:
        assert running.wait() == 1
        assert "MCP_NOTEBOOK_LIMITS" in running.said


@asynccontextmanager
async def _http_to(home, *kernel_ids):
    """Serve a Jupyter Server with these kernels, and yield its kernels, endpoints and a client."""
    kernels = ServerKernels(home)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kernels.watch_folder)
        kernels.take_line(json.dumps(kernel_ids))
        views = server_bridge._Views(Settings(home=home), (), kernels, tasks)

        async def app(scope, receive, send):
            await views({**scope, SCOPE_KEY: OWNER}, receive, send)

        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield kernels, views, http
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_only_who_runs_notebooks_is_told_that_jupyter_has_ended_the_kernel_of_one(home):
    runs = {RUNS_HEADER: "1"}
    async with peer(home, welcome("top")) as kernel, _http_to(home, "k") as (kernels, views, http):
        write_record(home, structs.replace(kernel.record, jupyter_id="k"))

        async def ask(**headers):
            return (await http.post("/mcp/sales", json=PING, headers=headers)).status_code

        assert await ask(**runs) != 404
        await views._views["sales"].links.wait_until_settled()
        remove_record(home, kernel.record.id)  # as if it was restarted
        assert await ask(**runs) != 404
        kernels.take_line("[]")
        assert await ask() != 404
        assert await ask(**runs) == 404
        kernels.take_line('["another"]')
        assert await ask(**runs) == 404


@pytest.mark.anyio
async def test_endpoints_of_notebooks_that_are_gone_make_room_for_others(home):
    names = [f"n{number}" for number in range(server_bridge.MAX_VIEWS + 2)]
    for name in names:
        write_record(home, make_record(name, name=name))  # nothing listens there
    async with _http_to(home, *names) as (_, views, http):
        for name in names:
            assert (await http.post(f"/mcp/{name}", json=PING)).status_code != 404
        assert list(views._views) == names[2:]
