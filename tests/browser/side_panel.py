"""The side panel of a page, as a user has it beside the notebook."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from assistant import Assistant
from lab_page import SOON, NotebookPage
from lab_server import LabServer
from playwright.sync_api import Locator, expect

TOOLS = """
import pathlib, time
from mcp_notebook import mcp_tool

@mcp_tool(run="thread")
def forecast_sales(seconds: float = 0) -> str:
    "Runs forecast_sales cells."
    for _ in range(int(seconds * 100)):
        time.sleep(0.01)
    return f"{seconds} s"

@mcp_tool
def clean_orders(seconds: float = 60) -> str:
    "Clean the orders."
    time.sleep(seconds)
    return "done"

@mcp_tool(run="thread")
def plot_rain(year: int):
    "Rain per month."
    from PIL import Image, ImageDraw
    image = Image.new("RGB", (640, 400), "white")
    draw = ImageDraw.Draw(image)
    for number in range(12):
        height = (number * number * 37) % 300 + 40
        draw.rectangle((30 + number * 50, 390 - height, 65 + number * 50, 390), fill="#4477aa")
    return image

@mcp_tool(run="thread")
def rain_in(city: str):
    "Rain in a city."
    raise ValueError(f"no data for {city}")
"""
MORE = (
    TOOLS
    + """
from mcp_notebook import Context

@mcp_tool(confirm=True, run="thread")
def delete_orders(customer: str, before: int = 2020) -> str:
    "Delete the orders of a customer."
    return f"deleted those of {customer}"

@mcp_tool(run="thread")
def train(epochs: int, ctx: Context) -> str:
    "Train the model."
    for epoch in range(epochs):
        ctx.progress(epoch + 1, epochs, f"epoch {epoch + 1}, loss {1 / (epoch + 1):.3f}")
        time.sleep(0.2)
    return "trained"
"""
)

STANDS_STILL = """button => new Promise(done => {
    let since = performance.now();
    const timer = setInterval(() => {
        if (button.ariaDisabled) {
            since = performance.now();
        } else if (performance.now() - since > 250) {
            clearInterval(timer);
            done();
        }
    }, 20);
})"""
"""The panel looks every 100 ms whether a question has moved."""


class SidePanel:
    """The panel of one page.

    Args:
        notebook: The page, with a notebook.
    """

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook = notebook
        self.place = notebook.page.locator("#mcp-notebook-panel")

    def open(self) -> "SidePanel":
        """Show it, as its command does."""
        self.notebook.execute("mcp-notebook:open-panel")
        expect(self.place).to_be_visible(timeout=SOON)
        return self

    def set_width(self, pixels: int) -> None:
        """Drag the edge of JupyterLab's right sidebar."""
        self.notebook.page.evaluate(
            """pixels => {
                const split = window.jupyterapp.shell._hsplitPanel;
                const sizes = split.relativeSizes().slice(0, -1);
                const part = pixels / split.node.clientWidth;
                const rest = (1 - part) / sizes.reduce((sum, size) => sum + size, 0);
                split.setRelativeSizes([...sizes.map(size => size * rest), part]);
            }""",
            pixels,
        )

    def section(self, title: str) -> Locator:
        """Return a part of it."""
        return self.place.get_by_role("region", name=re.compile(rf"^{title}( \d+)?$"))

    def button(self, name: str) -> Locator:
        """Return a button."""
        return self.place.get_by_role("button", name=name, exact=True)

    def wait_until_settled(self, name: str) -> None:
        """Wait until a button of a question takes a click: the question has not just moved."""
        self.button(name).first.evaluate(STANDS_STILL)

    def answer(self, name: str) -> None:
        """Answer the first question by one of its buttons."""
        self.wait_until_settled(name)
        self.button(name).first.click()

    def expect_text(self, text: str, *, section: str | None = None) -> None:
        """Wait until it says something."""
        place = self.place if section is None else self.section(section)
        expect(place).to_contain_text(text, timeout=SOON)


def open_panel(
    notebook: NotebookPage, find_assistant: Callable[[Locator], Assistant], source: str = MORE
) -> tuple[SidePanel, Assistant]:
    """Return the panel beside a notebook with tools, and an assistant that can call them."""
    panel = SidePanel(notebook).open()
    notebook.run_all()
    notebook.run(source)
    return panel, find_assistant(notebook.run("%mcp serve"))


@contextmanager
def busy(server: LabServer, notebook: NotebookPage) -> Iterator[None]:
    """Keep a cell running for the length of the block."""
    release = server.folder / "release"
    release.unlink(missing_ok=True)
    source = f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.01)"
    notebook.start_cell(notebook.add_cell(source))
    try:
        yield
    finally:
        release.touch()


def find_wide(place: Locator) -> Any:
    """Return what is wider than the panel."""
    return place.evaluate(
        """panel => [...panel.querySelectorAll("*")].filter(element =>
            element.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1
        ).map(element => element.outerHTML.slice(0, 100))"""
    )
