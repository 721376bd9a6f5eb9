"""The pictures of VS Code: a question as a notification, and in the side panel."""

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
    """Make the pictures in a folder."""
    place = server.home / "weather"
    place.mkdir()
    window = Window(chromium.new_context(viewport=SIZE).new_page(), address, place)
    window.open("seattle.ipynb", *read_cells(), *read_cells(ASK))
    window.run_all()
    window.page.mouse.move(0, 0)  # away from what shows a tooltip
    expect(window.status_bar).to_contain_text("3 tools", timeout=SOON)
    assistant = StdioAssistant(server.home)
    assistant.call(TOOL, **ARGUMENTS)
    asking = assistant.start_call(ASKING_TOOL, year=2012)
    expect(window.notification("year = 2012")).to_be_visible(timeout=SOON)
    _photograph(window, folder / "vs_code_notification.png")
    panel = window.panel
    window.run_command("Notifications: Clear All Notifications")
    panel.expect_text("year = 2012", section="Questions")
    _photograph(window, folder / "vs_code_panel.png")
    panel.answer("Deny")
    asking.result(TIMEOUT)
    assistant.close()
    server.end_kernels()


def _photograph(window: Window, file: Path) -> None:
    window.page.screenshot(path=file, animations="disabled")
    file.write_bytes(write_png(Image.open(file)))
