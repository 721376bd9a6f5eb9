"""What a newcomer sees after `mcp-notebook demo`."""

import shutil
import tempfile
from pathlib import Path

import pytest
from lab_page import SOON, NotebookPage
from lab_server import lab_server
from playwright.sync_api import expect
from side_panel import SidePanel

pytestmark = pytest.mark.browser


@pytest.mark.oldest_jupyterlab
def test_the_demo_opens_a_notebook_with_the_panel_and_a_cell_that_calls_the_tool(context):
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))  # sockets live below it: a short path
    command = ("-m", "mcp_notebook", "demo", str(home / "notebooks"), "--no-browser")
    with lab_server(home, command=command) as server:
        notebook = NotebookPage(context.new_page())
        notebook.open(server, "demo.ipynb", app="lab")
        panel = SidePanel(notebook)
        expect(panel.place).to_be_visible(timeout=SOON)
        expect(panel.button("Connect an assistant")).to_contain_class("jp-mcp-lit")
        notebook.photograph("demo", panel.place)
        notebook.run_all()
        picture = notebook.page.locator(".jp-OutputArea-output img")
        expect(picture).to_be_visible(timeout=SOON)
        notebook.shut_down()
    shutil.rmtree(home)
