"""A notebook in a page of JupyterLab or Notebook 7, as a user has it before him."""

import re
from pathlib import Path
from typing import Any, Literal

from lab_server import LabServer
from playwright.sync_api import BrowserContext, Locator, Page, expect

SCREENSHOTS = Path(__file__).parent / "screenshots"
"""Not kept in the repository."""
SOON = 60_000
"""Milliseconds: what takes two seconds on a quiet machine."""
OPENED = 180_000
"""Milliseconds until a page is there: JupyterLab's scripts alone take some four seconds of CPU."""
expect.set_options(timeout=SOON)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
_PANEL = "window.jupyterapp.shell.currentWidget"


class NotebookPage:
    """The page of one notebook. Cells are counted from 0, those with text, too.

    Cells are run by the commands that the keys and buttons run: their promises say when it is done.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.cells = page.locator(".jp-Notebook .jp-Notebook-cell")

    def open(self, server: LabServer, path: str, *, app: Literal["lab", "notebook"]) -> None:
        """Open the notebook and wait for its kernel."""
        self.page.goto(server.address(path, app=app), timeout=OPENED)
        self._wait_until_ready()
        self.wait_until_idle()

    def reload(self) -> None:
        """Load the page again."""
        self.page.reload(timeout=OPENED)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        self.page.wait_for_function(
            f"() => window.jupyterapp && {_PANEL}?.sessionContext?.isReady", timeout=OPENED
        )

    def wait_until_idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            f"() => {_PANEL}.sessionContext.kernelDisplayStatus === 'idle'", timeout=SOON
        )

    def use_theme(self, theme: Literal["light", "dark"]) -> None:
        """Change the theme, as the menu Settings does."""
        name = THEMES[theme]
        self.execute("apputils:change-theme", theme=name)
        expect(self.page.locator("body")).to_have_attribute(
            "data-jp-theme-name", name, timeout=SOON
        )

    def execute(self, command: str, **arguments: Any) -> None:
        """Run a command of JupyterLab's, to its end."""
        self.begin(command, **arguments)
        self.wait_until_done()

    def begin(self, command: str, **arguments: Any) -> None:
        """Run a command, but do not wait for its end: it asks something, say."""
        self.page.evaluate(
            """([command, args]) => {
                window.outcome = null;
                window.jupyterapp.commands.execute(command, args).then(
                    () => { window.outcome = "done" },
                    error => { window.outcome = String(error) },
                );
            }""",
            [command, arguments],
        )

    def wait_until_done(self) -> None:
        """Wait for the end of the command that was begun."""
        self.page.wait_for_function("() => window.outcome", timeout=SOON)
        assert self.page.evaluate("() => window.outcome") == "done"

    # -- cells -----------------------------------------------------------------------------------

    def add_cell(self, source: str) -> int:
        """Add a cell at the end, and return its number."""
        self.page.evaluate(
            f"""source => {{
                const panel = {_PANEL};
                panel.model.sharedModel.addCell({{cell_type: "code", source, metadata: {{}}}});
            }}""",
            source,
        )
        index = self.cells.count() - 1
        expect(self.cells.nth(index)).to_be_visible(timeout=SOON)
        return index

    def set_source(self, index: int, source: str) -> None:
        """Replace what a cell holds."""
        self.page.evaluate(
            f"""([index, source]) => {_PANEL}.content.widgets[index].model.sharedModel.setSource(
                source)""",
            [index, source],
        )

    def run_cell(self, index: int) -> Locator:
        """Run a cell to its end, and return its outputs."""
        self.start_cell(index)
        self.wait_until_done()
        return self.output_of(index)

    def start_cell(self, index: int) -> None:
        """Begin to run a cell."""
        self.page.evaluate(f"index => {{ {_PANEL}.content.activeCellIndex = index }}", index)
        self.begin("notebook:run-cell")

    def run(self, source: str) -> Locator:
        """Add a cell, run it to its end, and return its outputs."""
        return self.run_cell(self.add_cell(source))

    def run_all(self) -> None:
        """Run all cells, to the end."""
        self.execute("notebook:run-all-cells")

    def output_of(self, index: int) -> Locator:
        """Return where the outputs of a cell are."""
        return self.cells.nth(index).locator(".jp-Cell-outputArea")

    def restart(self) -> None:
        """Restart the kernel, and say in the dialog that we mean it."""
        self.begin("notebook:restart-kernel")
        self.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=SOON)
        self.wait_until_done()
        self.wait_until_idle()

    def is_dirty(self) -> bool:
        """Return whether the notebook has changes that are not in its file."""
        return bool(self.page.evaluate(f"() => {_PANEL}.context.model.dirty"))

    def save(self) -> None:
        """Write the notebook to its file."""
        self.execute("docmanager:save")

    def shut_down(self) -> None:
        """End the kernel."""
        self.page.evaluate(f"() => {_PANEL}.sessionContext.shutdown()")

    # -- pictures --------------------------------------------------------------------------------

    def photograph(self, name: str, shown: Locator) -> None:
        """Keep a picture of the page in which something is shown, for whoever wants to look."""
        shown.scroll_into_view_if_needed()
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")


class Guard:
    """Lets a browser reach loopback only, and notes what else it asked for."""

    def __init__(self, context: BrowserContext) -> None:
        self.refused: list[str] = []
        # A pattern, not a function: what fits is found without this thread, which may wait.
        context.route(re.compile(r"^(?!(http://127\.0\.0\.1:|data:|blob:))"), self._refuse)

    def _refuse(self, route: Any) -> None:
        self.refused.append(route.request.url)
        route.abort()
