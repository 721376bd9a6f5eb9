"""The pictures of the side panel, and of ``%mcp panel`` without one: an assistant at work."""

from io import BytesIO
from pathlib import Path

from assistant import Assistant, find_assistant
from lab_page import SOON
from lab_server import LabServer
from live import live_kernel
from pictures.first_page import write_png
from pictures.lab_notebook import (
    LONG_TOOL,
    SCALE,
    connect_assistant,
    open_notebook,
    read_long_cells,
    show_top,
)
from pictures.plot_rain import ARGUMENTS, ROOT, TOOL, read_cells
from PIL import Image
from playwright.sync_api import Browser
from side_panel import SidePanel

ASK = ROOT / "docs" / "guides" / "ask-the-user.md"
ASKING_TOOL = "forget_year"
"""A tool of the guide to questions, whose calls need consent."""
WIDTH = 900
"""Pixels of an output."""


def photograph_side_panel(server: LabServer, chromium: Browser) -> bytes:
    """Return a picture of the side panel beside a notebook, as PNG."""
    with open_notebook(server, chromium, _read_cells(), theme="light") as notebook:
        notebook.run_all()
        panel = SidePanel(notebook)
        with connect_assistant(notebook, server) as assistant:
            _call_before(assistant)
            asking = assistant.start_call(ASKING_TOOL, year=2012)
            running = assistant.start_call(LONG_TOOL, year=2015, rounds=1_000_000)
            panel.expect_text("year = 2012", section="Questions")
            panel.expect_text("1 %", section="Running calls")
            waiting = assistant.start_call(TOOL, year=2014)
            panel.expect_text("waiting", section="Running calls")
            show_top(notebook)
            png = notebook.page.screenshot(animations="disabled")
            panel.button("Deny").click()
            panel.button(f"Stop {LONG_TOOL}").click()
            for call in (asking, running, waiting):
                call.result(SOON)
    return write_png(Image.open(BytesIO(png)))


def photograph_snapshot(home: Path, chromium: Browser) -> bytes:
    """Return a picture of the output of ``%mcp panel``, as PNG.

    Args:
        home: An empty folder with a short path, for a kernel that no application with a side panel
            has started.
        chromium: The browser.
    """
    with live_kernel(home, notebook=str(home / "weather.ipynb")) as kernel:
        for cell in _read_cells():
            kernel.ok(cell)
        # On the main thread, the long call would hold up the line that shows it.
        kernel.ok(f"%mcp_tool {LONG_TOOL} --read-only --run thread")
        assistant = find_assistant(kernel.ok("%mcp serve").text, home)
        try:
            assistant.stay()
            _call_before(assistant)
            running = assistant.start_call(LONG_TOOL, year=2015, rounds=1_000_000)
            while "running" not in (shown := kernel.ok("%mcp panel").displays[0])["text/plain"]:
                pass
            kernel.ok("%mcp stop")
            running.result(SOON)
        finally:
            assistant.close()
            kernel.ok("%mcp serve --stop")
    page = chromium.new_page(viewport={"width": WIDTH, "height": 100}, device_scale_factor=SCALE)
    style = "body { font: 14px/1.4 sans-serif; margin: 8px }"
    page.set_content(f"<!doctype html><style>{style}</style>{shown['text/html']}")
    png = page.screenshot(full_page=True)
    page.close()
    return write_png(Image.open(BytesIO(png)))


def _read_cells() -> list[str]:
    return [*read_cells(), *read_long_cells(), *read_cells(ASK)]


def _call_before(assistant: Assistant) -> None:
    assistant.call(TOOL, **ARGUMENTS)
    assistant.call(TOOL, year="all")  # an error
