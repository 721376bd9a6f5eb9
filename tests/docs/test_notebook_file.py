"""The notebook file: what outputs have, and what they never have."""

import json

import pytest
from live import live_kernel

from mcp_notebook.kernel.notebook.background_bridge import stop_bridge
from mcp_notebook.settings.settings import Settings

LOAD = "from mcp_notebook import Secret\n%load_ext mcp_notebook"
TOOL = """%%mcp_tool --read-only
def log_in(user: str, password: Secret[str]) -> str:
    "Log in to the warehouse."
    return f"{user} has {len(password.get_secret_value())} characters"
"""
PASSWORD = "correct-horse-battery"


@pytest.fixture
def kernel(home):
    with live_kernel(home) as kernel:
        yield kernel
    stop_bridge(Settings(home=home / ".mcp-notebook"))


def test_loading_the_extension_stores_nothing_in_a_notebook_of_a_folder_of_its_own(kernel):
    kernel.ok("import os\nos.mkdir('notebooks')\nos.chdir('notebooks')")
    loaded = kernel.ok(LOAD)
    assert (loaded.displays, loaded.stdout, loaded.stderr) == ([], "", "")


def test_a_card_is_the_same_in_each_run_and_each_kernel(home):
    cards = []
    for _ in range(2):
        with live_kernel(home) as kernel:
            kernel.ok(LOAD)
            cards += [kernel.ok(TOOL).displays for _ in range(2)]
    assert len(cards[0]) == 1
    assert all(card == cards[0] for card in cards)
    assert len(json.dumps(cards[0])) < 1_000


def test_no_output_has_the_token_or_a_secret_argument(home, kernel):
    kernel.ok(LOAD)
    kernel.ok(f"word = {PASSWORD!r}")
    lines = (
        "%mcp call log_in user=ada password=$word",
        "%mcp serve",
        "%mcp status",
        "%mcp log",
        "%mcp panel",
    )
    outputs = [kernel.ok(cell) for cell in (TOOL, *lines)]
    stored = json.dumps([(output.displays, output.text) for output in outputs])
    (token,) = home.joinpath(".mcp-notebook").glob("token")
    assert "ada has 21 characters" in stored
    assert token.name in stored
    assert token.read_text(encoding="utf-8").strip() not in stored
    assert PASSWORD not in stored
