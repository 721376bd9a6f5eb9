"""The cells that clients propose, as a person sees, edits, accepts, rejects and undoes them."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import assistant as assistants
import pytest
from lab_page import SOON, THEMES, NotebookPage
from lab_server import lab_server
from looks import find_violations
from playwright.sync_api import expect
from side_panel import STANDS_STILL, SidePanel, busy, find_wide

from mcp_notebook.kernel.notebook.background_bridge import stop_bridge
from mcp_notebook.settings.settings import Settings

pytestmark = pytest.mark.browser
APPS = ("lab", "notebook")
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PANEL = "window.jupyterapp.shell.currentWidget"
RAIN = '''%%mcp_tool
def rain(year: int) -> str:
    """Rain of a year at a station, in millimetres.

    Args:
        year: The year, from 1900 on.
        station: The name of the station.
    """
    # as before
    return f"{year} mm"
'''
RAIN_AT = RAIN.replace("year: int", 'year: int, station: str = "Oslo"').replace(
    "{year} mm", "{year} mm at {station}"
)
HIDING = (
    "import os  # Gr\u00fc\u00dfe, \u043f\u0440\u0438\u0432\u0435\u0442, \u27e6\n\n"
    "def p\u0430ypal(amount):\n"
    "    x = 'access' # \u202e }\u2066if admin\u2069\n"
    "    return f'{amount}\u00a0\u200b'\rprint('own' + 'ed')\n"
    "y = 1" + 10_000 * " " + "; print('far right')\n" + 400 * "\n" + "print('far down')"
)

# The second one may be gone when it is to be clicked.
CLICK = "buttons => buttons.forEach(button => button.click())"


class Ghost:
    """A proposal in the notebook, or in the side panel.

    Args:
        notebook: The page.
        place: Where it is.
    """

    def __init__(self, notebook, place=".jp-mcp-ghost"):
        self.notebook = notebook
        self.place = notebook.page.locator(f"{place} .jp-mcp-proposal")

    def expect_text(self, text):
        expect(self.place.first).to_contain_text(text, timeout=SOON)

    def button(self, name):
        return self.place.first.get_by_role("button", name=name, exact=True)

    def wait_until_ready(self, name):
        """Wait until a button takes a click."""
        self.button(name).scroll_into_view_if_needed()
        expect(self.button(name)).not_to_be_disabled(timeout=SOON)
        self.button(name).evaluate(STANDS_STILL)

    def click(self, name):
        self.wait_until_ready(name)
        self.button(name).click()

    def read_to_the_end(self):
        """Scroll to the end of the source."""
        self.place.first.locator(".jp-mcp-end").scroll_into_view_if_needed()


@pytest.fixture
def propose(find_assistant):
    """Switch proposals on in the panel: a function that returns the panel and an assistant."""

    def propose(notebook, source=RAIN):
        panel = SidePanel(notebook).open()
        notebook.run("%load_ext mcp_notebook")
        notebook.run(source)
        panel.place.get_by_role("switch", name="Clients may propose cells").click()
        panel.expect_text("Nothing is inserted or run before you accept it.")
        return panel, find_assistant(notebook.run("%mcp serve"))

    return propose


def answer_of(assistant, call):
    """Return what the client is told: a call that takes long is answered with a handle first."""
    said = call.result(60)
    while handle := re.search(r"with the handle '([^']+)'", said):
        said = assistant.call("notebook_result", handle=handle[1])
    return said


def read_cells(notebook):
    """Return the cells of a page: the source and the metadata of each."""
    return notebook.page.evaluate(
        f"() => {PANEL}.model.sharedModel.cells.map(cell => [cell.getSource(), cell.metadata])"
    )


def find_last(notebook):
    """Return the last cell, its origin and the line below it."""
    source, metadata = read_cells(notebook)[-1]
    origin = metadata.get("mcp_notebook", {}).get("proposed")
    return source, origin, notebook.cells.last.locator(".jp-mcp-line").last


@pytest.mark.oldest_jupyterlab
@pytest.mark.parametrize("app", APPS)
def test_an_accepted_cell_runs_says_who_proposed_it_and_is_taken_back(
    server, open_notebook, propose, app
):
    notebook = open_notebook("quickstart.ipynb", app=app)
    _, assistant = propose(notebook)
    before = read_cells(notebook)
    call = assistant.start_call(
        "propose_cell", source="total = sum(range(10))\ntotal", reason="You asked for <b>it</b>."
    )
    ghost = Ghost(notebook)
    ghost.expect_text("assistant 1.0 proposes a cell")
    ghost.expect_text("You asked for <b>it</b>.")
    assert read_cells(notebook) == before
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"proposal_{app}_{theme}", ghost.place)
        assert find_violations(ghost.place) == []
    ghost.click("Accept and run")
    said = answer_of(assistant, call)
    assert "accepted" in said
    assert "45" in said
    expect(ghost.place).to_have_count(0, timeout=SOON)
    expect(notebook.cells.last.locator(".jp-OutputArea-output")).to_have_text("45")
    source, origin, line = find_last(notebook)
    assert source == "total = sum(range(10))\ntotal"
    assert origin["client"] == "assistant 1.0"
    assert origin["digest"] == hashlib.sha256(source.encode()).hexdigest()
    assert origin["edited"] is False
    expect(line).to_contain_text("Proposed by assistant 1.0, ")
    notebook.photograph(f"proposal_accepted_{app}", line)
    assert find_violations(line) == []
    notebook.save()
    path = notebook.page.evaluate(f"() => {PANEL}.context.path")
    saved = json.loads((server.folder / path).read_text(encoding="utf-8"))["cells"][-1]
    assert "".join(saved["source"]) == source
    assert saved["metadata"]["mcp_notebook"]["proposed"] == origin
    line.get_by_role("button", name="Undo").click()
    dialog = notebook.page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("These names are deleted: total.")
    expect(dialog).to_contain_text("What else it has changed stays as it is")
    notebook.photograph(f"proposal_undo_{app}", dialog)
    dialog.locator(".jp-mod-accept").click()
    expect(notebook.cells).to_have_count(len(before), timeout=SOON)
    expect(notebook.run("'total' in globals()")).to_contain_text("False")


def test_what_hides_is_shown_as_what_it_is(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = propose(notebook)
    call = assistant.start_call("propose_cell", source=HIDING, reason="Harmless.")
    ghost = Ghost(notebook)
    ghost.expect_text("U+202E")
    codes = "27E6", "\u0430 U+0430", "202E", "2066", "2069", "00A0", "200B", "000D"
    shown = [f"\u27e6{code if ' ' in code else f'U+{code}'}\u27e7" for code in codes]
    expect(ghost.place.locator(".jp-mcp-box")).to_have_text(shown)
    ghost.expect_text("has characters that are not seen")
    ghost.expect_text("has a name with letters outside ASCII")
    # A line that ends with \r is two, as it is for Python.
    lines = ghost.place.locator(".cm-line")
    expect(lines.nth(5)).to_have_text("print('own' + 'ed')")
    width = "source => source.scrollWidth <= source.clientWidth"
    assert ghost.place.locator(".jp-mcp-source").evaluate(width)
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"proposal_hiding_{theme}", ghost.place)
        assert find_violations(ghost.place) == []
        for pixels in (250, 420):
            panel.set_width(pixels)
            notebook.photograph(f"proposal_hiding_panel_{pixels}_{theme}", panel.place)
            assert find_wide(panel.place) == []
            assert find_violations(panel.place) == []
    ghost.click("Reject")
    answer_of(assistant, call)


def test_every_byte_is_inserted_and_run_once_the_end_was_in_view(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    before = read_cells(notebook)
    call = assistant.start_call("propose_cell", source=HIDING, reason="Harmless.")
    ghost = Ghost(notebook)
    for place in (ghost, Ghost(notebook, "#mcp-notebook-panel")):
        expect(place.button("Accept")).to_have_attribute("aria-disabled", "true")
    ghost.expect_text("First look at the source, down to its end.")
    ghost.button("Reject").evaluate(STANDS_STILL)
    ghost.button("Accept and run").click(force=True)
    assert read_cells(notebook) == before
    ghost.read_to_the_end()
    ghost.click("Accept and run")
    said = answer_of(assistant, call)
    for part in ("owned", "far right", "far down"):
        assert part in said
    source, origin, _ = find_last(notebook)
    assert source == HIDING
    assert origin["digest"] == hashlib.sha256(HIDING.encode()).hexdigest()
    notebook.run("import hashlib")
    ran = notebook.run("[hashlib.sha256(cell.encode()).hexdigest() for cell in In]")
    expect(ran).to_contain_text(origin["digest"])


@pytest.mark.oldest_jupyterlab
def test_a_new_version_of_a_tool_is_shown_line_by_line_and_replaces_its_cell(
    open_notebook, propose
):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    number = notebook.cells.count() - 2
    call = assistant.start_call(
        "propose_cell", source=RAIN_AT, reason="Stations.", kind="tool", replaces="rain"
    )
    ghost = Ghost(notebook, f".jp-Notebook-cell >> nth={number} >> .jp-mcp-ghost")
    ghost.expect_text("assistant 1.0 proposes a new version of rain")
    signs = ghost.place.locator(".cm-line, .cm-deletedLine").evaluate_all(
        "lines => lines.map(({className}) => "
        "/deleted/.test(className) ? '-' : /changed/.test(className) ? '+' : ' ').join('')"
    )
    assert signs == " -+       -+ "
    notebook.photograph("proposal_difference", ghost.place)
    # An edit of the cell meanwhile is in the difference, and is said.
    edited = RAIN.replace("# as before", "# my own remark")
    notebook.set_source(number, edited)
    ghost.expect_text("# my own remark")
    ghost.expect_text("The cell has been edited since it ran")
    ghost.click("Accept and run")
    assert "`rain`" in answer_of(assistant, call)
    assert read_cells(notebook)[number][0] == RAIN_AT
    assert assistant.call("rain", year=3, station="Bergen") == "3 mm at Bergen"
    notebook.save()
    notebook.reload()
    notebook.cells.nth(number).get_by_role("button", name="Undo").click()
    dialog = notebook.page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("The cell gets back what it held before.")
    dialog.locator(".jp-mod-accept").click()
    expect(dialog).to_have_count(0)
    notebook.page.wait_for_function(
        f"([number, source]) => {PANEL}.model.sharedModel.cells[number].getSource() === source",
        arg=[number, edited],
    )
    assert read_cells(notebook)[number][1].get("mcp_notebook") is None


def test_an_edited_cell_is_inserted_as_edited_and_the_client_gets_it(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = propose(notebook)
    call = assistant.start_call("propose_cell", source="limit = 10", reason="A limit.")
    ghost = Ghost(notebook)
    ghost.click("Edit")
    expect(ghost.place.locator(".cm-content")).to_be_focused()
    notebook.page.keyboard.press("Control+End")
    notebook.page.keyboard.type("0")
    notebook.photograph("proposal_edit", ghost.place)
    ghost.button("Done").click()
    # Both places show the one version.
    ghost.expect_text("limit = 100")
    panel.expect_text("limit = 100", section="Questions")
    ghost.click("Accept")
    said = answer_of(assistant, call)
    assert "limit = 100" in said
    assert "has not run it" in said
    source, origin, line = find_last(notebook)
    assert source == "limit = 100"
    assert origin["edited"] is True
    assert origin["digest"] == hashlib.sha256(b"limit = 10").hexdigest()
    expect(line).to_contain_text(", edited")


def test_a_rejected_cell_leaves_nothing_and_the_client_gets_the_word(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    before = read_cells(notebook)
    call = assistant.start_call("propose_cell", source="import os", reason="Files.")
    inside = Ghost(notebook, "#mcp-notebook-panel")
    inside.expect_text("assistant 1.0 proposes a cell")
    word = inside.place.get_by_role("textbox", name="Why it is rejected")
    word.fill("use pathlib")
    inside.wait_until_ready("Reject")
    # The key that ends a word's composition, as in Japanese, sends nothing.
    keys = {"key": "Enter", "bubbles": True}
    word.dispatch_event("keydown", {**keys, "isComposing": True})
    expect(inside.button("Reject")).not_to_be_disabled()
    word.dispatch_event("keydown", keys)
    assert "use pathlib" in answer_of(assistant, call)
    expect(Ghost(notebook).place).to_have_count(0, timeout=SOON)
    assert read_cells(notebook) == before


@pytest.mark.oldest_jupyterlab
def test_a_proposal_is_answered_by_the_keyboard(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    page = notebook.page
    call = assistant.start_call(
        "propose_cell", source="a = 1\n" + 100 * "\n" + "b = 2", reason="Numbers."
    )
    ghost = Ghost(notebook)
    ghost.expect_text("Numbers.")
    notebook.cells.last.focus()

    def go_to(name):
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(FOCUSED) == name:
                return
        raise AssertionError(f"{name!r} is not reached, but {page.evaluate(FOCUSED)!r}")

    go_to("Source")
    # A key scrolls to where the end was: an editor measures its lines as they come into view.
    while "First look at the source" in ghost.place.inner_text():
        page.keyboard.press("End")
        page.evaluate(SCROLLED)
    go_to("Accept and run")
    ghost.wait_until_ready("Accept and run")
    page.keyboard.press("Enter")
    assert "accepted" in answer_of(assistant, call)
    expect(notebook.run("a + b")).to_contain_text("3")
    call = assistant.start_call("propose_cell", source="c = 3", reason="More.")
    ghost.expect_text("More.")
    notebook.cells.last.focus()
    go_to("Why it is rejected")
    # The notebook's own keys: a is "insert a cell above", d d deletes.
    page.keyboard.type("added already")
    ghost.wait_until_ready("Reject")
    page.keyboard.press("Enter")
    assert "added already" in answer_of(assistant, call)


FOCUSED = """() => {
    const element = document.activeElement;
    return element.getAttribute("aria-label") ?? element.textContent;
}"""


SCROLLED = """() => new Promise(done => {
    const { activeElement } = document;
    let before;
    const look = () => {
        if (activeElement.scrollTop === before) {
            done();
        } else {
            before = activeElement.scrollTop;
            setTimeout(look, 100);
        }
    };
    look();
})"""
"""Waits until what has the focus scrolls no further."""


@contextmanager
def held(page, action):
    """Hold an action of the page for the length of the block, which gets what waits for it."""
    holding = []

    def hold(route):
        if json.loads(route.request.post_data)["action"] == action:
            holding.append(route)
        else:
            route.fallback()

    def wait():
        while not holding:
            page.wait_for_timeout(20)

    page.route("**/mcp-notebook/api/actions*", hold)
    yield wait
    for route in holding:
        route.continue_()
    page.unroute("**/mcp-notebook/api/actions*", hold)


@pytest.mark.parametrize("change", ["edit", "delete"])
def test_a_place_that_changes_at_the_last_moment_gets_nothing_and_the_person_is_asked_again(
    open_notebook, propose, change
):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    number = notebook.cells.count() - 2
    call = assistant.start_call(
        "propose_cell", source=RAIN_AT, reason="Stations.", kind="tool", replaces="rain"
    )
    ghost = Ghost(notebook)
    ghost.expect_text("proposes a new version of rain")
    with held(notebook.page, "take") as wait:
        ghost.click("Accept and run")
        wait()
        if change == "edit":
            notebook.set_source(number, "mine = 1")
        else:
            notebook.page.evaluate(
                f"number => {PANEL}.model.sharedModel.deleteCell(number)", number
            )
        before = read_cells(notebook)
    word = {"edit": "was edited", "delete": "was deleted"}[change]
    ghost.expect_text(f"The cell that the proposal is for {word}.")
    assert read_cells(notebook) == before
    if change == "delete":
        ghost.expect_text("it would stand at the end of the notebook")
    ghost.click("Accept")
    assert "accepted" in answer_of(assistant, call)
    assert RAIN_AT in [source for source, _ in read_cells(notebook)]


def test_a_restart_of_the_kernel_takes_the_proposal_and_answers_its_client(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    before = read_cells(notebook)
    call = assistant.start_call("propose_cell", source="1 + 1", reason="A sum.")
    ghost = Ghost(notebook)
    ghost.expect_text("A sum.")
    notebook.restart()
    expect(ghost.place).to_have_count(0, timeout=SOON)
    assert "restart" in answer_of(assistant, call)
    assert read_cells(notebook)[: len(before)] == before


def test_two_tabs_insert_one_cell_and_another_notebook_none(
    server, open_notebook, propose, context
):
    other = open_notebook("quickstart.ipynb")
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    notebook.save()
    path = notebook.page.evaluate(f"() => {PANEL}.context.path")
    tab = NotebookPage(context.new_page())
    tab.open(server, path, app="notebook")
    call = assistant.start_call("propose_cell", source="n = globals().get('n', 0) + 1", reason="N.")
    ghosts = [Ghost(notebook), Ghost(tab)]
    for ghost in ghosts:
        ghost.expect_text("N.")
        ghost.wait_until_ready("Accept and run")
    expect(other.page.locator(".jp-mcp-ghost")).to_have_count(0)
    for ghost in ghosts:
        ghost.button("Accept and run").evaluate_all(CLICK)
    assert "accepted" in answer_of(assistant, call)
    for ghost in ghosts:
        expect(ghost.place).to_have_count(0, timeout=SOON)
    found = [
        source
        for page in (notebook, tab, other)
        for source, _ in read_cells(page)
        if source.startswith("n = ")
    ]
    assert len(found) == 1
    expect(notebook.run("f'{n} time'")).to_contain_text("1 time")


def test_a_cell_that_is_accepted_while_the_kernel_is_busy_waits_for_its_turn(
    server, open_notebook, propose
):
    notebook = open_notebook("quickstart.ipynb")
    _, assistant = propose(notebook)
    notebook.run("import pathlib, time")
    with busy(server, notebook):
        call = assistant.start_call("propose_cell", source="6 * 7", reason="The answer.")
        ghost = Ghost(notebook)
        ghost.expect_text("The answer.")
        ghost.click("Accept and run")
        expect(notebook.cells.last.locator(".jp-InputPrompt")).to_have_text("[*]:")
    assert "42" in answer_of(assistant, call)


def test_a_proposal_and_its_edit_outlive_that_a_windowed_notebook_hides_its_cell(
    open_notebook, propose
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = propose(notebook)
    errors = []
    notebook.page.on("console", lambda said: errors.append(said.text))
    notebook.page.evaluate(WINDOWED)
    call = assistant.start_call("propose_cell", source="a = 1", reason="One.", after="rain")
    inside = Ghost(notebook, "#mcp-notebook-panel")
    inside.click("Show in the notebook")
    ghost = Ghost(notebook)
    ghost.click("Edit")
    expect(ghost.place.locator(".cm-content")).to_be_focused()
    notebook.page.keyboard.press("Control+End")
    notebook.page.keyboard.type("0")
    # The active cell is never hidden.
    scroll = f"""index => {{
        {PANEL}.content.activeCellIndex = index;
        {PANEL}.content.scrollToItem(index, 'end');
    }}"""
    last = len(read_cells(notebook)) - 1
    notebook.page.evaluate(scroll, last)
    expect(ghost.place).to_have_count(0, timeout=SOON)
    inside.expect_text("a = 10")
    inside.click("Show in the notebook")
    ghost.expect_text("a = 10")
    notebook.page.evaluate(scroll, last)
    expect(ghost.place).to_have_count(0, timeout=SOON)
    inside.click("Reject")
    assert "rejected" in answer_of(assistant, call)
    panel.expect_text("Rejected the cell")
    assert [text for text in errors if "removeChild" in text] == []


WINDOWED = f"""() => {{
    const {{content, model}} = {PANEL};
    content.notebookConfig = {{...content.notebookConfig, windowingMode: "full"}};
    for (let count = 0; count < 40; count++) {{
        const source = "x = 1\\n".repeat(12);
        model.sharedModel.addCell({{cell_type: "code", source, metadata: {{}}}});
    }}
}}"""


def test_a_notification_tells_of_a_proposal_that_is_not_seen(open_notebook, propose):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = propose(notebook)
    notebook.page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    call = assistant.start_call("propose_cell", source="1", reason="One.")
    toast = notebook.page.locator(".Toastify__toast")
    expect(toast).to_contain_text("assistant 1.0 proposes a cell", timeout=SOON)
    expect(notebook.page.locator(".jp-mcp-asked")).to_have_count(1)
    toast.get_by_role("button", name="Show").click()
    panel.expect_text("One.", section="Questions")
    Ghost(notebook).click("Reject")
    answer_of(assistant, call)
    expect(toast).to_have_count(0, timeout=SOON)


# -- two people in one notebook --------------------------------------------------------------------


@pytest.fixture
def shared_server(tmp_path_factory):
    """A server with jupyter-collaboration, from a folder beside the environment."""
    uv, place = shutil.which("uv"), tmp_path_factory.mktemp("collaboration")
    command = [uv, "pip", "install", "-q", "--python", sys.executable, "--target", str(place)]
    if uv is None or subprocess.run([*command, "jupyter-collaboration"], check=False).returncode:
        pytest.skip("jupyter-collaboration cannot be installed here")
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
    env = {
        "PYTHONPATH": str(place),
        "JUPYTER_PATH": str(place / "share" / "jupyter"),
        "JUPYTER_CONFIG_PATH": str(place / "etc" / "jupyter"),
    }
    with lab_server(home, env=env) as server:
        yield server
        # With its store of documents, it sometimes waits for an idle thread of AnyIO's for ever.
        os.kill(server.pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.slow
def test_two_people_in_one_notebook_insert_one_cell_and_either_takes_it_back(
    shared_server, context
):
    shutil.copy(NOTEBOOKS / "quickstart.ipynb", shared_server.folder / "shared.ipynb")
    notebook, other = NotebookPage(context.new_page()), NotebookPage(context.new_page())
    notebook.open(shared_server, "shared.ipynb", app="lab")
    notebook.run("%load_ext mcp_notebook\n%mcp propose on")
    served = notebook.run("%mcp serve")
    assistant = assistants.find_assistant(served.inner_text(), shared_server.home)
    other.open(shared_server, "shared.ipynb", app="lab")
    expect(other.cells).to_have_count(notebook.cells.count(), timeout=SOON)
    before = read_cells(notebook)
    call = assistant.start_call("propose_cell", source="n = globals().get('n', 0) + 1", reason="N.")
    ghosts = [Ghost(notebook), Ghost(other)]
    for ghost in ghosts:
        ghost.expect_text("N.")
        ghost.wait_until_ready("Accept and run")
    for ghost in ghosts:
        ghost.button("Accept and run").evaluate_all(CLICK)
    assert "accepted" in answer_of(assistant, call)
    for ghost in ghosts:
        expect(ghost.place).to_have_count(0, timeout=SOON)
    for page in (notebook, other):
        expect(page.cells).to_have_count(len(before) + 1, timeout=SOON)
        assert find_last(page)[1]["client"] == "assistant 1.0"
    expect(find_last(other)[2]).to_contain_text("Proposed by assistant 1.0, ", timeout=SOON)
    other.cells.last.get_by_role("button", name="Undo").click()
    other.page.locator(".jp-Dialog .jp-mod-accept").click()
    for page in (notebook, other):
        expect(page.cells).to_have_count(len(before), timeout=SOON)
    expect(notebook.run("'n' in globals()")).to_contain_text("False")
    assistant.close()
    stop_bridge(Settings(home=shared_server.home / ".mcp-notebook"))
    notebook.shut_down()
