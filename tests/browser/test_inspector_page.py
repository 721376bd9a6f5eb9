"""MCP Inspector's page in Chromium: what it shows of prompts, resources and skills."""

import os
import re
import subprocess
from contextlib import contextmanager

import pytest
from bridges import TOKEN, http_bridge
from kinds import CELLS, LOOK
from lab_page import Guard
from live import find_free_port, live_kernel
from npm import programs
from npm_packages import LIMIT
from playwright.sync_api import expect

LOAD = "%load_ext mcp_notebook"
pytestmark = [pytest.mark.browser, pytest.mark.timeout(LIMIT)]


@pytest.fixture(scope="module")
def notebook(module_home):
    with live_kernel(module_home, notebook=str(module_home / "kinds.ipynb")) as kernel:
        for cell in (LOAD, *CELLS, LOOK):
            kernel.ok(cell)
        yield kernel


@contextmanager
def inspector_page(home, era, server):
    """Serve the Inspector's page for a server, and yield its address, which has a token."""
    node, launcher, _ = programs().inspector
    header = f"Authorization: Bearer {TOKEN}"
    words = ["--web", "--protocol-era", era, "--transport", "http"]
    process = subprocess.Popen(
        [node, launcher, *words, "--server-url", server, "--header", header],
        cwd=home,
        env={
            "HOME": str(home),
            "PATH": os.defpath,
            "HOST": "127.0.0.1",
            "CLIENT_PORT": str(find_free_port()),
            "MCP_AUTO_OPEN_ENABLED": "false",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield next(
            found.group()
            for line in process.stdout
            if (found := re.search(r"http://\S+\?MCP_INSPECTOR_API_TOKEN=\S+", line))
        )
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(params=["legacy", "modern"])
def page(request, chromium, notebook):
    """The page, connected to a bridge to the notebook, and the era of the protocol."""
    with (
        http_bridge(notebook.home) as bridge,
        inspector_page(notebook.home, request.param, bridge.url) as url,
    ):
        context = chromium.new_context(viewport={"width": 1500, "height": 1000})
        guard = Guard(context)
        page = context.new_page()
        page.goto(url)
        page.get_by_role("switch").first.click(force=True)
        expect(page.get_by_text("Connected", exact=True)).to_be_visible()
        yield page, request.param
        context.close()
        assert all(url.startswith("https://fonts.googleapis.com/") for url in guard.refused)


def open_tab(page, name):
    page.get_by_text(name, exact=True).first.click()


def choose(page, label, typed, value):
    """Type into a field, and choose one of the values that the notebook suggests."""
    page.get_by_label(re.compile(f"^{label}")).first.press_sequentially(typed)
    page.get_by_role("option", name=value).click()


def test_the_inspectors_page_shows_prompts_resources_and_skills(page, notebook):
    page, era = page
    open_tab(page, "Prompts")
    page.get_by_text("report", exact=True).first.click()
    expect(page.get_by_text("(whole number)")).to_be_visible()
    page.get_by_label(re.compile("^year")).first.fill("2026")
    choose(page, "region", "u", "US")
    page.get_by_role("button", name="Get Prompt").click()
    expect(page.get_by_text("Report on 2026 for US.")).to_be_visible()
    page.get_by_text("look", exact=True).first.click()
    expect(page.get_by_text("What is odd?")).to_be_visible()
    expect(page.locator("img[src^='data:image/png']")).to_have_count(1)

    open_tab(page, "Resources")
    page.get_by_text("data_orders", exact=True).first.click()
    expect(page.get_by_role("cell", name="US")).to_be_visible()
    page.get_by_role("button", name="Subscribe", exact=True).click()
    expect(page.get_by_text("Subscriptions (1)")).to_be_visible()
    notebook.ok("orders = orders.assign(region='Asia')")
    try:
        page.get_by_role("button", name="Refresh").click()
        expect(page.get_by_role("cell", name="Asia")).to_have_count(2)
    finally:
        notebook.ok(CELLS[0])
    page.get_by_text("frame", exact=True).first.click()
    choose(page, "name", "cust", "customers")
    page.get_by_role("button", name="Read Resource").click()
    expect(page.get_by_text("frame://customers")).to_be_visible()
    expect(page.get_by_role("cell", name="US")).to_be_visible()

    if era == "modern":  # which has extensions
        open_tab(page, "Skills")
        page.get_by_text("weekly", exact=True).first.click()
        expect(page.get_by_text("Use this for a week's report.").first).to_be_visible()
