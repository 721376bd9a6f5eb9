"""The pictures of the guides to the side panel and to ``%mcp panel``: an assistant at work."""

from io import BytesIO

from lab_page import SOON, NotebookPage
from lab_server import LabServer
from pictures.first_page import write_png
from pictures.lab_notebook import (
    HEIGHT,
    LONG_TOOL,
    WIDTH,
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

SNAPSHOT = """
import time
from mcp_notebook.kernel.notebook.panel.snapshot import build_snapshot
panel = get_ipython()._mcp_notebook.panel
state = panel.read({})
display(build_snapshot(state, panel.find_thumbnails(state.ended_calls), time.time()), raw=True)
"""
"""What ``%mcp panel`` runs in a frontend without the side panel."""


def photograph_panels(server: LabServer, chromium: Browser) -> dict[str, bytes]:
    """Return both pictures as PNG, by their names."""
    cells = [*read_cells(), *read_long_cells(), *read_cells(ASK)]
    with open_notebook(server, chromium, cells, theme="light") as notebook:
        notebook.run_all()
        panel = SidePanel(notebook)
        with connect_assistant(notebook, server) as assistant:
            assistant.call(TOOL, **ARGUMENTS)
            assistant.call(TOOL, year="all")  # an error
            asking = assistant.start_call(ASKING_TOOL, year=2012)
            panel.expect_text("year = 2012", section="Questions")
            below = _photograph_snapshot(notebook)
            running = assistant.start_call(LONG_TOOL, year=2015, rounds=1_000_000)
            panel.expect_text("1 %", section="Running calls")
            waiting = assistant.start_call(TOOL, year=2014)
            panel.expect_text("waiting", section="Running calls")
            beside = notebook.page.screenshot(animations="disabled")
            panel.button("Deny").click()
            panel.button(f"Stop {LONG_TOOL}").click()
            for call in (running, asking, waiting):
                call.result(SOON)
    pictures = {"side_panel.png": beside, "panel.png": below}
    return {name: write_png(Image.open(BytesIO(png))) for name, png in pictures.items()}


def _photograph_snapshot(notebook: NotebookPage) -> bytes:
    """Return a picture of what ``%mcp panel`` shows where there is no side panel."""
    shown = notebook.run(SNAPSHOT)
    notebook.page.set_viewport_size({"width": WIDTH, "height": 2 * HEIGHT})
    picture = shown.locator(".jp-RenderedHTMLCommon").screenshot(animations="disabled")
    notebook.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    notebook.execute("notebook:delete-cell")
    show_top(notebook)
    return picture
