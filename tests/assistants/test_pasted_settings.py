"""The card on Binder: its settings, pasted into real assistants, bring the notebook's tools."""

import json

import pytest
from assistants import ASSISTANTS, write_json
from conversation import set_up
from jupyter_servers import TOKEN, jupyter_server
from npm_packages import LIMIT
from stand_in import PATIENCE, stand_in
from talks import LOAD, TOOLS, end

pytestmark = [pytest.mark.assistants, pytest.mark.timeout(LIMIT + PATIENCE)]
PREFIX = "/user/ada-rain-1a2b3c/"
BINDER = {
    "BINDER_LAUNCH_HOST": "https://mybinder.org/",
    "JUPYTERHUB_BASE_URL": "/",
    "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
}
PLACES = {"Claude Code": "work/.mcp.json", "Gemini CLI": ".gemini/settings.json"}
"""Where the card says that the settings belong, below the home folder."""


@pytest.fixture(scope="module")
def card(module_home):
    """The card of a notebook on a server as Binder starts it, and the server's address."""
    with jupyter_server(module_home, f"--ServerApp.base_url={PREFIX}", env=BINDER) as server:
        kernel = server.start_kernel()
        loaded, _ = server.run(kernel, LOAD, TOOLS)
        yield loaded.displays[0]["text/plain"], server.url.removesuffix(PREFIX)


@pytest.mark.parametrize("name", PLACES)
def test_settings_that_are_pasted_where_the_card_says_bring_the_tools(name, home, modules, card):
    text, host = card
    assert PLACES[name].rpartition("work/")[2] in text
    (settings,) = (line.strip() for line in text.splitlines() if "mcpServers" in line)
    settings = settings.replace("https://HOST", host).replace("TOKEN", TOKEN)
    assistant = ASSISTANTS[name]
    tool = assistant.tool.replace("notebook", "binder").format
    with stand_in(assistant.api()) as model:
        commands = set_up(assistant, home, model.url, modules)
        write_json(home / PLACES[name], json.loads(settings))
        words = [word.replace("mcp__notebook", "mcp__binder") for word in assistant.arguments]
        process = commands.start(*words, has_pipes=False)
        try:
            model.watch(process, home / "said")
            if assistant.search:
                model.call(assistant.search, query=f"select:{tool('extremes')}")
            assert model.call(tool("extremes")).pictures
            model.say_end()
            assert model.wait_for_process() == 0
        finally:
            end(process)
