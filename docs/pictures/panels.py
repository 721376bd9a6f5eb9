"""The pictures of the side panel, an assistant at work, and of a cell that it proposes."""

from io import BytesIO

from assistant import Assistant
from lab_page import SOON
from lab_server import LabServer
from pictures.first_page import write_png
from pictures.lab_notebook import (
    LONG_TOOL,
    connect_assistant,
    open_notebook,
    read_long_cells,
    set_width,
    show_top,
)
from pictures.plot_rain import ARGUMENTS, ROOT, TOOL, read_cells
from PIL import Image
from playwright.sync_api import Browser, expect
from side_panel import STANDS_STILL, SidePanel

ASK = ROOT / "docs" / "guides" / "ask-the-user.md"
ASKING_TOOL = "forget_year"
"""A tool of the guide to questions, whose calls need consent."""
GAP = 24
"""Pixels between two pictures in one."""


WIDTHS = (250, 420)
"""Pixels of the panel as JupyterLab opens it, and as a user may draw it."""


def photograph_side_panel(server: LabServer, chromium: Browser) -> tuple[bytes, bytes]:
    """Return a picture of the side panel beside a notebook, and one of it in `WIDTHS`, as PNG."""
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
            narrow, wide = [_photograph_alone(panel, width) for width in WIDTHS]
            panel.button("Deny").click()
            panel.button(f"Stop {LONG_TOOL}").click()
            for call in (asking, running, waiting):
                call.result(SOON)
    both = Image.new("RGB", (narrow.width + GAP + wide.width, wide.height), "#bdbdbd")
    both.paste(narrow, (0, 0))
    both.paste(wide, (narrow.width + GAP, 0))
    return write_png(Image.open(BytesIO(png))), write_png(both)


def _photograph_alone(panel: SidePanel, width: int) -> Image.Image:
    set_width(panel, width)
    expect(panel.button("Deny")).to_be_enabled()  # not while the question moves
    return Image.open(BytesIO(panel.place.screenshot(animations="disabled")))


def photograph_proposal(server: LabServer, chromium: Browser) -> bytes:
    """Return a picture of a new version of a tool that an assistant proposes, as PNG."""
    cells = read_cells()
    source = (
        cells[-1]
        .replace("year: int = 2015)", "year: int = 2015, by_week: bool = False)")
        .replace("month by month.", "by month or by week.")
        .replace("to 2015.\n", "to 2015.\n        by_week: Draw weeks in place of months.\n")
        .replace('strftime("%b")', 'strftime("%W" if by_week else "%b")')
    )
    with open_notebook(server, chromium, cells, theme="light") as notebook:
        notebook.run_all()
        panel = SidePanel(notebook)
        panel.place.get_by_role("switch", name="Clients may propose cells").click()
        panel.expect_text("before you accept it")
        with connect_assistant(notebook, server) as assistant:
            call = assistant.start_call(
                "propose_cell",
                source=source,
                reason="You asked for the rain of each week.",
                replaces=TOOL,
            )
            ghost = notebook.page.locator(".jp-mcp-ghost")
            button = ghost.get_by_role("button", name="Accept and run")
            button.scroll_into_view_if_needed(timeout=SOON)
            ghost.evaluate("ghost => ghost.scrollIntoView({block: 'center'})")
            button.evaluate(STANDS_STILL)
            png = notebook.page.screenshot(animations="disabled")
            ghost.get_by_role("button", name="Reject").click()
            call.result(SOON)
    return write_png(Image.open(BytesIO(png)))


def _read_cells() -> list[str]:
    return [*read_cells(), *read_long_cells(), *read_cells(ASK)]


def _call_before(assistant: Assistant) -> None:
    assistant.call(TOOL, **ARGUMENTS)
    assistant.call(TOOL, year="all")  # an error
