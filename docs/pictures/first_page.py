"""The picture of the first page: a notebook in JupyterLab that an assistant has called.

Everything on it is real: the README's cells run in JupyterLab, an MCP client makes the call, and
Chromium shows the page. The harness of the browser's tests (`tests/browser/`) starts and drives all
of it; it needs the extra ``browser``.
"""

from io import BytesIO

from assistant import find_assistant
from lab_page import SOON, THEMES, NotebookPage
from lab_server import LabServer
from nbformat.v4 import new_code_cell, new_notebook, writes
from pictures.plot_rain import ARGUMENTS, TOOL, read_cells
from PIL import Image
from playwright.sync_api import Browser, Page, expect

WIDTH = 860
"""Pixels of the page; the picture has twice as many."""
HEIGHT = 1400
"""Pixels of the page, enough for all cells; the picture ends below the last one."""


def photograph_notebook(server: LabServer, chromium: Browser) -> dict[str, bytes]:
    """Return the picture as PNG, for each theme."""
    path = server.folder / "weather.ipynb"
    path.write_text(_write_notebook(), encoding="utf-8")
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2)
    notebook = NotebookPage(page)
    notebook.open(server, path.name, app="lab")
    notebook.execute("application:toggle-left-area")
    notebook.run_all()
    assistant = find_assistant(notebook.run("%mcp serve").inner_text(), server.home)
    try:
        notebook.execute("notebook:delete-cell")
        panel = notebook.run("%mcp panel")
        assistant.stay()
        assistant.call(TOOL, **ARGUMENTS)
        expect(panel.locator("img")).to_be_visible(timeout=SOON)
        return {theme: _photograph(page, notebook, theme) for theme in THEMES}
    finally:
        assistant.close()
        notebook.run("%mcp serve --stop")
        notebook.shut_down()
        page.close()


def _write_notebook() -> str:
    kernel = {"display_name": "Python 3 (ipykernel)", "name": "python3"}  # or it is asked for
    cells = [new_code_cell(source) for source in read_cells()]
    return writes(new_notebook(cells=cells, metadata={"kernelspec": kernel}))


def _photograph(page: Page, notebook: NotebookPage, theme: str) -> bytes:
    notebook.use_theme(theme)
    notebook.cells.first.scroll_into_view_if_needed()
    last = notebook.cells.last.bounding_box()
    assert last is not None
    height = last["y"] + last["height"] + 12
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
    image = Image.open(BytesIO(page.screenshot(animations="disabled", clip=clip)))
    file = BytesIO()
    image.convert("RGB").quantize(256).save(file, "PNG", optimize=True)
    return file.getvalue()
