"""Real assistants at a Jupyter server's own ``/mcp``: they propose cells, a person decides."""

import json
import re
from contextlib import closing, contextmanager

import pytest
from assistants import ANSWER, ASSISTANTS, QUESTION
from codex_app import CodexApp
from conversation import set_up
from judging_proxy import judging
from jupyter_servers import HEADERS, TOKEN, jupyter_server, login
from live import TIMEOUT
from npm_packages import LIMIT
from stand_in import PATIENCE, stand_in
from talks import LOAD, end
from websocket import create_connection

from mcp_notebook.clients.client import TOKEN_VARIABLE

pytestmark = [pytest.mark.assistants, pytest.mark.timeout(LIMIT + PATIENCE)]
API = "mcp-notebook/api"
CELL = {"source": "days = 6 * 7\nprint(days, 'dry days')", "reason": "To count them."}


class Page:
    """A page that shows a notebook: the routes that JupyterLab's side panel uses, by hand."""

    def __init__(self, server, kernel, http, socket):
        self._server, self._kernel = server, kernel
        self._http, self._socket = http, socket

    def act(self, action, **fields):
        body = {"kernel": self._kernel, "action": action} | fields
        self._http.post(f"{API}/actions", json=body).raise_for_status()

    def accept(self):
        """Wait for a proposal, insert its cell, and run it."""
        proposals = None
        while not proposals:
            changes = json.loads(self._socket.recv()).get("changes") or {}
            proposals = changes.get("proposals")
        (proposal,) = proposals
        assert proposal["source"] == CELL["source"]
        number = proposal["number"]
        self.act("take", proposal=number, digest=proposal["digest"], run=True)
        settle = {"proposal": number, "cell": "new"}
        self.act("settle", outcome="inserted", **settle)
        (output,) = self._server.run(self._kernel, proposal["source"])
        outputs = [{"output_type": "stream", "name": "stdout", "text": [output.stdout]}]
        self.act("settle", outcome="ran", outputs=outputs, **settle)


@contextmanager
def shown_notebook(server, http):
    """Show a notebook for which clients may propose cells in a page."""
    kernel = server.start_kernel(LOAD, path="rain.ipynb")
    url = server.url.replace("http", "ws", 1) + f"{API}/changes"
    try:
        with closing(create_connection(url, header=HEADERS, timeout=TIMEOUT)) as socket:
            page = Page(server, kernel, http, socket)
            page.act("propose", on=True)
            yield page
    finally:
        server.http.delete(f"api/kernels/{kernel}").raise_for_status()


@pytest.fixture(scope="module")
def server(module_home):
    with jupyter_server(module_home, env={"MCP_NOTEBOOK_TASK_AFTER": "1"}) as server:
        yield server


@pytest.mark.parametrize("name", ["Claude Code", "Codex CLI", "Gemini CLI"])
def test_a_cell_that_it_proposes_is_run_by_a_person_who_takes_her_time(name, server, home, modules):
    assistant = ASSISTANTS[name]
    propose, fetch = map(assistant.tool.format, ("propose_cell", "notebook_result"))
    token_file = home / "token"
    token_file.write_text(TOKEN, "utf-8")
    token_file.chmod(0o600)
    with (
        login(server) as http,
        judging(f"{server.url}mcp") as url,
        stand_in(assistant.api()) as model,
        shown_notebook(server, http) as page,
    ):
        options = ["--http", "--url", url, "--token-file", str(token_file)]
        commands = set_up(assistant, home, model.url, modules, *options)
        commands.env[TOKEN_VARIABLE] = TOKEN  # for those that do not read the file
        process = commands.start(*assistant.arguments, has_pipes=assistant.is_app)
        try:
            model.watch(process, home / "said")
            app = CodexApp(process, ANSWER) if assistant.is_app else None
            if app is not None:
                app.say(QUESTION)
            if assistant.search:
                model.call(assistant.search, query=f"select:{propose},{fetch}")
            told = model.call(propose, **CELL).text
            assert "is still running" in told
            page.accept()
            told = model.call(fetch, handle=re.search(r"propose_cell-[\w-]+", told)[0]).text
            assert "The user ran it.\n42 dry days" in told
            model.say_end()
            if app is not None:
                app.close()
            assert model.wait_for_process() == 0
        finally:
            end(process)
