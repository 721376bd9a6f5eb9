"""The animation of the first page: an assistant calls the tools of a notebook in JupyterLab."""

from dataclasses import dataclass, field
from io import BytesIO

from assistant import Assistant
from lab_page import SOON
from lab_server import LabServer
from pictures.lab_notebook import (
    LONG_TOOL,
    connect_assistant,
    open_notebook,
    read_long_cells,
    show_top,
)
from pictures.plot_rain import ARGUMENTS, TOOL, read_cells
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from side_panel import SidePanel

ROUNDS = 15_000
"""Enough for the long call to take some seconds."""
LOOPS = 3
"""How often the animation plays before it rests on its last picture."""


@dataclass
class Film:
    """The pictures of a page, in order, and how many milliseconds each is shown."""

    page: Page
    pictures: list[Image.Image] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)

    def show(self, milliseconds: int) -> None:
        """Add the page as it is now."""
        png = self.page.screenshot(animations="disabled")
        self.pictures.append(Image.open(BytesIO(png)).convert("RGB"))
        self.durations.append(milliseconds)

    def write_animation(self) -> bytes:
        """Return all pictures as an animated WebP."""
        file = BytesIO()
        first, *others = self.pictures
        first.save(
            file,
            "WEBP",
            save_all=True,
            append_images=others,
            duration=self.durations,
            loop=LOOPS,
            quality=80,
            method=6,
            minimize_size=True,
        )
        return file.getvalue()

    def write_last(self) -> bytes:
        """Return the last picture as PNG."""
        return write_png(self.pictures[-1])


def write_png(image: Image.Image) -> bytes:
    """Return a picture as a small PNG."""
    file = BytesIO()
    image.convert("RGB").quantize(256).save(file, "PNG", optimize=True)
    return file.getvalue()


def film_calls(server: LabServer, chromium: Browser, theme: str) -> Film:
    """Return the film in a theme, "light" or "dark"."""
    cells = [*read_cells(), *read_long_cells()]
    with open_notebook(server, chromium, cells, theme=theme) as notebook:
        film = Film(notebook.page)
        film.show(1200)
        notebook.run_all()
        panel = SidePanel(notebook)
        panel.expect_text(LONG_TOOL, section="Tools")
        show_top(notebook)
        film.show(1800)
        with connect_assistant(notebook, server) as assistant:
            _film_picture(film, panel, assistant)
            _film_long_call(film, panel, assistant)
    return film


def _film_picture(film: Film, panel: SidePanel, assistant: Assistant) -> None:
    panel.expect_text("assistant", section="Clients")
    film.show(1200)
    assistant.call(TOOL, **ARGUMENTS)
    expect(panel.section("Last calls").locator("img")).to_be_visible(timeout=SOON)
    film.show(2400)


def _film_long_call(film: Film, panel: SidePanel, assistant: Assistant) -> None:
    call = assistant.start_call(LONG_TOOL, year=2015, rounds=ROUNDS)
    bar = panel.place.get_by_role("progressbar")
    expect(bar).to_be_visible(timeout=SOON)
    while not call.done() and bar.is_visible():
        film.show(400)
    call.result(SOON)
    panel.expect_text("mm, from", section="Last calls")
    film.show(3000)
