"""The picture of VS Code: the side panel with a question."""

import tempfile
from pathlib import Path

from live import TIMEOUT
from pictures.first_page import write_png
from pictures.panels import ASK, ASKING_TOOL
from pictures.plot_rain import ARGUMENTS, TOOL, read_cells
from PIL import Image
from playwright.sync_api import Browser, expect
from vs_code import SOON, CodeServer, StdioAssistant, Window

SIZE = {"width": 1100, "height": 700}


def photograph_vs_code(folder: Path, server: CodeServer, address: str, chromium: Browser) -> None:
    """Make the picture in a folder."""
    place = Path(tempfile.mkdtemp(prefix="weather", dir=server.home))
    window = Window(chromium.new_context(viewport=SIZE).new_page(), address, place)
    window.open("seattle.ipynb", *read_cells(), *read_cells(ASK))
    window.run_all()
    expect(window.status_bar).to_contain_text("tools", timeout=SOON)
    assistant = StdioAssistant(server.home)
    assistant.call(TOOL, **ARGUMENTS)
    panel = window.panel
    panel.expect_text(TOOL, section="Last calls")
    asking = assistant.start_call(ASKING_TOOL, year=2012)
    panel.expect_text("year = 2012", section="Questions")
    file = folder / "vs_code_panel.png"
    window.page.screenshot(path=file, animations="disabled")
    file.write_bytes(write_png(Image.open(file)))
    panel.answer("Deny")
    asking.result(TIMEOUT)
    assistant.close()
    server.end_kernels()
