"""The line below a cell: which tools it declares, and that the extension is not loaded."""

import json
import shutil
import subprocess
import sys

import pytest
from lab_page import SOON, THEMES
from looks import find_violations
from playwright.sync_api import expect
from side_panel import SidePanel

pytestmark = pytest.mark.browser
TOOLS = """%%mcp_tool --read-only
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""
APPS = ("lab", "notebook")


@pytest.mark.oldest_jupyterlab
@pytest.mark.parametrize("app", APPS)
def test_a_cell_with_a_tool_says_so_with_its_calls_and_nothing_of_it_is_saved(
    server, open_notebook, find_assistant, app
):
    notebook = open_notebook("quickstart.ipynb", app=app)
    notebook.run("%load_ext mcp_notebook")
    cell = notebook.add_cell(TOOLS)
    notebook.run_cell(cell)
    line = notebook.cells.nth(cell).locator(".jp-mcp-line")
    expect(line).to_have_text("tool · 0 calls · read-only", timeout=SOON)
    assistant = find_assistant(notebook.run("%mcp serve"))
    notebook.save()
    for _ in range(2):
        assert assistant.call("add", a=1, b=2) == "3"
    expect(line).to_have_text("tool · 2 calls · read-only", timeout=SOON)
    is_dirty = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
    assert not notebook.page.evaluate(is_dirty)
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"cell_line_{app}_{theme}", line)
        assert find_violations(line) == []
    button = line.get_by_role("button")
    for width in (600, 1100):  # below 760, JupyterLab has prompts above the code
        notebook.page.set_viewport_size({"width": width, "height": 900})
        code = notebook.cells.nth(cell).locator(".jp-InputArea-editor")
        notebook.photograph(f"cell_line_{app}_{width}", line)
        assert abs(find_left(button) - find_left(code)) < 10
    panel = SidePanel(notebook)
    button.focus()
    button.press("Enter")
    expect(panel.place).to_be_visible(timeout=SOON)
    notebook.save()
    path = notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    assert "jp-mcp" not in (server.folder / path).read_text(encoding="utf-8")
    notebook.restart()
    expect(line).to_have_count(0, timeout=SOON)


def find_left(shown):
    return shown.evaluate("element => element.getBoundingClientRect().left")


@pytest.mark.oldest_jupyterlab
def test_a_forgotten_load_ext_is_told_below_the_cell_and_made_up_for(open_notebook):
    notebook = open_notebook("quickstart.ipynb", app="notebook")
    cell = notebook.add_cell(TOOLS)
    notebook.start_cell(cell)
    line = notebook.cells.nth(cell).locator(".jp-mcp-line")
    expect(line).to_contain_text("mcp_notebook is not loaded in this kernel.", timeout=SOON)
    notebook.photograph("load_ext_forgotten", line)
    assert find_violations(line) == []
    line.get_by_role("button", name="Load it and run this cell").click()
    expect(line).to_have_text("tool · 0 calls · read-only", timeout=SOON)
    sources = notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets"
        ".filter(cell => cell.model.type === 'code')"
        ".map(cell => cell.model.sharedModel.getSource())"
    )
    # The notebook had such a cell, which was not run: no second one.
    assert sum("%load_ext mcp_notebook" in source for source in sources) == 1


def test_a_notebook_without_load_ext_gets_it_as_its_first_cell(server, open_notebook):
    notebook = open_notebook("quickstart.ipynb")
    notebook.page.evaluate(
        "() => { const model = window.jupyterapp.shell.currentWidget.content.model.sharedModel;"
        " model.deleteCellRange(0, model.cells.length); }"
    )
    cell = notebook.add_cell("%mcp status")
    notebook.start_cell(cell)
    notebook.page.get_by_role("button", name="Load it and run this cell").click(timeout=SOON)
    first = notebook.cells.first
    expect(first).to_contain_text("%load_ext mcp_notebook", timeout=SOON)
    expect(notebook.cells.last.locator(".jp-Cell-outputArea")).not_to_contain_text("UsageError")


@pytest.fixture(params=["uv", "pip"])
def other_environment(server, request):
    """An environment with ipykernel, perhaps with pip: its Python, and the line that installs.

    One of conda's has pip: no channel has the package, and conda's manual says to use pip then.
    """
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    folder = server.home / "geo"
    python = folder / "bin" / "python"
    seed = ["--seed"] if request.param == "pip" else []
    subprocess.run(
        [uv, "venv", "-q", "--clear", *seed, "--python", sys.executable, folder], check=True
    )
    subprocess.run([uv, "pip", "install", "-q", "--python", python, "ipykernel"], check=True)
    spec = server.home / "data" / "kernels" / "geo" / "kernel.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "geo", "language": "python"}))
    return (
        python,
        f'!uv pip install --python "{python}" ' if request.param == "uv" else "%pip install ",
    )


def test_an_environment_that_lacks_the_package_is_named_and_gets_it_if_its_user_agrees(
    open_notebook, other_environment
):
    python, install_line = other_environment
    notebook = open_notebook("quickstart.ipynb")
    change = (
        "() => window.jupyterapp.shell.currentWidget.sessionContext.changeKernel({name: 'geo'})"
    )
    notebook.page.evaluate(change)
    notebook.wait_until_idle()
    panel = SidePanel(notebook).open()
    version = ".".join(map(str, sys.version_info[:3]))
    notebook.run("import sys; path, sys.executable = sys.executable, None")
    panel.button("Load mcp_notebook").click()
    panel.expect_text(f"of this kernel, Python {version}. Install mcp-notebook there.")
    notebook.run("sys.executable = path")
    count = notebook.cells.count()
    panel.button("Load mcp_notebook").click()
    dialog = notebook.page.locator(".jp-Dialog")
    dialog.get_by_role("button", name="Cancel").click()
    lack = (
        "mcp_notebook is not installed in the environment of this kernel, "
        f"Python {version} ({python})."
    )
    panel.expect_text(lack)
    expect(panel.button("Install it there")).to_be_visible()
    assert notebook.cells.count() == count  # no cell that fails
    notebook.photograph("other_environment", panel.place)
    assert find_violations(panel.place) == []
    cell = notebook.add_cell(TOOLS)
    notebook.start_cell(cell)
    line = notebook.cells.nth(cell).locator(".jp-mcp-line")
    expect(line).to_contain_text(lack, timeout=SOON)
    install = line.get_by_role("button", name="Install it there and run this cell")
    install.click()
    expect(dialog).to_contain_text(install_line)
    notebook.photograph("other_environment_question", dialog)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(notebook.page.locator(".jp-Notebook")).not_to_contain_text("pip install")
    install.click()
    dialog.get_by_role("button", name="Install").click()
    expect(line).to_have_text("tool · 0 calls · read-only", timeout=3 * SOON)
    panel.expect_text("live")
    expect(notebook.page.locator(".jp-Notebook")).not_to_contain_text("pip install")


@pytest.mark.oldest_jupyterlab
def test_a_call_is_recorded_as_a_cell_with_its_result(server, open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    notebook.run("%load_ext mcp_notebook")
    notebook.run(TOOLS)
    assistant = find_assistant(notebook.run("%mcp serve"))
    assert assistant.call("add", a=20, b=22) == "42"
    panel.section("Last calls").get_by_role("button", name="add(").click()
    panel.button("Record").click()
    expect(notebook.page.locator(".jp-mod-active .jp-OutputArea")).to_have_text("42", timeout=SOON)
    notebook.save()
    path = notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    cells = json.loads((server.folder / path).read_text(encoding="utf-8"))["cells"]
    (recorded,) = [
        cell for cell in cells if "".join(cell["source"]) == '%mcp call add {"a": 20, "b": 22}'
    ]
    assert recorded["metadata"].get("trusted") is not True
