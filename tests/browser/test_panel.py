"""The live panel, as its user sees it in JupyterLab and Notebook 7, while assistants call."""

from contextlib import contextmanager

import pytest
from lab_page import SOON
from looks import look_at
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TOOLS = """
import pathlib, time
from mcp_notebook import mcp_tool

@mcp_tool(run="thread")
def beside(seconds: float = 0) -> str:
    "Runs beside cells."
    for _ in range(int(seconds * 100)):
        time.sleep(0.01)
    return f"{seconds} s"

@mcp_tool
def between(seconds: float = 60) -> str:
    "Runs between cells."
    time.sleep(seconds)
    return "done"

@mcp_tool(run="thread")
def plot():
    "A picture."
    from PIL import Image, ImageDraw
    image = Image.new("RGB", (640, 400), "white")
    draw = ImageDraw.Draw(image)
    for number in range(12):
        height = (number * number * 37) % 300 + 40
        draw.rectangle((30 + number * 50, 390 - height, 65 + number * 50, 390), fill="#4477aa")
    return image

@mcp_tool(run="thread")
def fail():
    "Fails."
    raise ValueError("there is no such year")
"""


@contextmanager
def busy(server, notebook):
    """Keep a cell running for the length of the block."""
    release = server.folder / "release"
    release.unlink(missing_ok=True)
    source = f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.01)"
    notebook.start_cell(notebook.add_cell(source))
    try:
        yield
    finally:
        release.touch()


def find_stop(panel, tool):
    """Return the stop buttons of a tool's calls."""
    row = panel.get_by_role("row").filter(has_text=tool)
    return row.get_by_role("button", name="stop", exact=True)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_panel_follows_calls_and_stops_them_also_while_a_cell_runs(
    server, open_notebook, find_assistant, app
):
    notebook = open_notebook("quickstart.ipynb", app=app)
    notebook.run_all()
    notebook.run(TOOLS)
    assistant = find_assistant(notebook.run("%mcp serve"))
    panel = notebook.run("%mcp panel")
    expect(panel).to_contain_text("live")
    assistant.call("plot")
    assistant.call("fail")
    expect(panel.locator("img")).to_have_count(1, timeout=SOON)
    expect(panel).to_contain_text("there is no such year", timeout=SOON)

    with busy(server, notebook):
        running = assistant.start_call("beside", seconds=60)
        waiting = assistant.start_call("between", seconds=20)
        expect(panel).to_contain_text("waiting for the end of the cell since", timeout=SOON)
        expect(find_stop(panel, "beside")).to_have_count(1, timeout=SOON)
        look_at(f"panel_{app}", notebook, panel)
        find_stop(panel, "beside").click()
        assert "The user stopped the call" in running.result(60)
        expect(find_stop(panel, "beside")).to_have_count(0, timeout=SOON)
    # It has begun, and keeps the kernel busy itself.
    expect(panel).to_contain_text("the notebook's interrupt", timeout=SOON)
    find_stop(panel, "between").click()
    assert "The user stopped the call" in waiting.result(60)
    expect(panel.get_by_role("button")).to_have_count(0, timeout=SOON)

    notebook.wait_until_idle()
    notebook.run("%unload_ext mcp_notebook")
    expect(panel).to_contain_text("gone", timeout=SOON)
    notebook.photograph(f"panel_gone_{app}", panel)
