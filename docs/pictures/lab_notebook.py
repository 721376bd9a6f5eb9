"""A notebook of the documents' own cells in JupyterLab, and an assistant that calls its tools.

Nothing is staged: JupyterLab runs the cells, Chromium shows the page, an MCP client makes the
calls. The harness of the browser's tests (`tests/browser/`) drives them; it needs the extra
``browser``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from assistant import Assistant, find_assistant
from lab_page import NotebookPage
from lab_server import LabServer
from nbformat.v4 import new_code_cell, new_notebook, writes
from pictures.plot_rain import ROOT, read_cells
from playwright.sync_api import Browser
from side_panel import SidePanel

WIDTH, HEIGHT = 1200, 720
"""Pixels of the page; a picture has `SCALE` times as many."""
SCALE = 1.5
PANEL_WIDTH = 330
"""Pixels of the side panel."""
LONG_CALLS = ROOT / "docs" / "guides" / "long-calls.md"
LONG_TOOL = "mean_rain"
"""A tool of the guide to long calls; its parameter ``rounds`` says how long it takes."""


def read_long_cells() -> list[str]:
    """Return the cells that declare the long tool."""
    return read_cells(LONG_CALLS)[:2]


@contextmanager
def open_notebook(
    server: LabServer, chromium: Browser, cells: Sequence[str], *, theme: str
) -> Iterator[NotebookPage]:
    """Open a new notebook with these cells and the side panel beside it. Nothing has run yet."""
    path = server.folder / "weather.ipynb"
    kernel = {"display_name": "Python 3 (ipykernel)", "name": "python3"}  # or it is asked for
    notebook = new_notebook(
        cells=[new_code_cell(source) for source in cells], metadata={"kernelspec": kernel}
    )
    path.write_text(writes(notebook), encoding="utf-8")
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
    opened = NotebookPage(page)
    opened.open(server, path.name, app="lab")
    opened.use_theme(theme)
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    set_width(SidePanel(opened).open(), PANEL_WIDTH)
    show_top(opened)
    try:
        yield opened
    finally:
        opened.shut_down()
        page.close()
        path.unlink()


@contextmanager
def connect_assistant(notebook: NotebookPage, server: LabServer) -> Iterator[Assistant]:
    """Serve the notebook over HTTP, and connect an assistant that stays."""
    assistant = find_assistant(notebook.run("%mcp serve").inner_text(), server.home)
    notebook.execute("notebook:delete-cell")
    show_top(notebook)
    try:
        assistant.stay()
        yield assistant
    finally:
        assistant.close()
        notebook.run("%mcp serve --stop")


def show_top(notebook: NotebookPage) -> None:
    """Scroll to the first cell."""
    notebook.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0 }"
    )
    notebook.cells.first.scroll_into_view_if_needed()


def set_width(panel: SidePanel, width: int) -> None:
    """Drag the panel's edge."""
    box = panel.place.bounding_box()
    assert box is not None
    page = panel.notebook.page
    page.mouse.move(box["x"] - 2, HEIGHT / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - width, HEIGHT / 2, steps=4)
    page.mouse.up()
    page.mouse.move(WIDTH / 2, 4)
    page.evaluate("() => window.getSelection().removeAllRanges()")
