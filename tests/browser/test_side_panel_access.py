"""Who can use the side panel: without a mouse, with large type or few colors, in any language."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from lab_page import SOON, NotebookPage
from lab_server import lab_server
from looks import find_violations
from playwright.sync_api import expect
from side_panel import SidePanel, find_wide, open_panel

pytestmark = pytest.mark.browser
CATALOGUE = Path(__file__).parents[2] / "labextension" / "mcp_notebook.pot"
HIGH_CONTRAST = "JupyterLab Dark High Contrast"
DATA = (
    ".jp-mcp-name, .jp-mcp-origin, .jp-mcp-outcome, code, pre, .jp-mcp-main, "
    ".jp-mcp-link.jp-mcp-row"
)
"""What is not the panel's own text."""


@pytest.mark.oldest_jupyterlab
def test_everything_is_done_by_the_keyboard(server, open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    page = notebook.page
    training = assistant.start_call("train", epochs=1_000)
    panel.expect_text("loss 0.", section="Running calls")
    page.keyboard.press("Control+Shift+KeyC")
    expect(page.get_by_placeholder("SEARCH", exact=True)).to_be_focused(timeout=SOON)
    page.keyboard.type("Show the Tools of the Notebook")
    page.keyboard.press("Enter")
    expect(panel.button("Connect an assistant")).to_be_focused(timeout=SOON)

    def go_to(name):
        for _ in range(60):
            if page.evaluate(FOCUSED) == name:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{name!r} is not reached, but {page.evaluate(FOCUSED)!r}")

    go_to("Stop train")
    page.keyboard.press("Enter")
    assert "The user stopped the call" in training.result(60)
    deleting = assistant.start_call("delete_orders", customer="Ada")
    expect(panel.place.get_by_role("status").first).to_contain_text(
        "May delete_orders run?", timeout=SOON
    )
    panel.button("Connect an assistant").focus()
    go_to("Allow")
    panel.wait_until_settled("Allow")
    page.keyboard.press("Enter")
    assert deleting.result(60) == "deleted those of Ada"
    assert panel.place.evaluate("panel => panel.contains(document.activeElement)")
    go_to("Clients may call train")
    page.keyboard.press(" ")
    panel.expect_text("Clients no longer see train.")
    panel.expect_text("delete_orders(", section="Last calls")
    panel.button("Connect an assistant").focus()
    go_to("Last calls")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    panel.expect_text("Insert as cell")
    go_to("Copy the result")
    page.keyboard.press("Enter")
    panel.expect_text("The result was copied.")


FOCUSED = """() => {
    const element = document.activeElement;
    const text = element.querySelector("span:not([class])") ?? element;
    return element.getAttribute("aria-label") ?? text.textContent;
}"""


def test_it_is_read_with_high_contrast_with_the_users_colors_and_enlarged(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("rain_in", city="Atlantis")
    deleting = assistant.start_call("delete_orders", customer="Ada")
    training = assistant.start_call("train", epochs=1_000)
    panel.expect_text("loss 0.", section="Running calls")
    panel.expect_text('customer = "Ada"', section="Questions")
    panel.button("Connect an assistant").click()
    panel.expect_text("Not found: ")
    notebook.execute("apputils:change-theme", theme=HIGH_CONTRAST)
    expect(notebook.page.locator("body")).to_have_attribute(
        "data-jp-theme-name", HIGH_CONTRAST, timeout=SOON
    )
    notebook.photograph("side_panel_high_contrast", panel.place)
    assert find_violations(panel.place) == []
    notebook.use_theme("light")
    notebook.page.emulate_media(forced_colors="active")
    notebook.photograph("side_panel_forced_colors", panel.place)
    # What is told by a background only would be gone.
    for part in (".jp-mcp-bar > div", ".jp-mcp-live"):
        assert panel.place.locator(part).first.evaluate(IS_SEEN), part
    assert find_violations(panel.place) == []
    notebook.page.emulate_media(forced_colors="none")
    # A window of 1,280 by 800 pixels at 200 %.
    notebook.page.set_viewport_size({"width": 640, "height": 400})
    notebook.photograph("side_panel_200_percent", panel.place)
    assert find_wide(panel.place) == []
    for button in ("Allow", "Stop train", "Deny"):
        panel.button(button).scroll_into_view_if_needed()
        expect(panel.button(button)).to_be_in_viewport()
    panel.answer("Deny")
    deleting.result(60)
    panel.button("Stop train").click()
    training.result(60)


IS_SEEN = """element => ["", "::before"].some(pseudo => {
    const style = getComputedStyle(element, pseudo || null);
    const canvas = getComputedStyle(document.body).backgroundColor;
    return ![canvas, "rgba(0, 0, 0, 0)"].includes(style.backgroundColor)
        || parseFloat(style.borderTopWidth) > 0;
})"""


# -- other languages -------------------------------------------------------------------------------


@pytest.fixture
def translated_server():
    """A server with a package that translates all texts of the panel, by putting them in ⟦⟧."""
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))  # sockets live below it: a short path
    package = home / "packages" / "mcp_notebook_de"
    catalogue = package / "locale" / "de_DE" / "LC_MESSAGES" / "mcp_notebook.json"
    catalogue.parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    catalogue.write_text(json.dumps(translate(CATALOGUE.read_text(encoding="utf-8"))), "utf-8")
    metadata = home / "packages" / "mcp_notebook_de-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp-notebook-de\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[jupyterlab.languagepack]\nde_DE = mcp_notebook_de\n"
    )
    settings = home / "settings" / "@jupyterlab" / "translation-extension"
    settings.mkdir(parents=True)
    (settings / "plugin.jupyterlab-settings").write_text('{"locale": "de_DE"}')
    with lab_server(home, env={"PYTHONPATH": str(home / "packages")}) as server:
        yield server
    shutil.rmtree(home, ignore_errors=True)


def translate(catalogue):
    """Return a translation of a catalogue in the form that JupyterLab reads."""
    head = {
        "domain": "mcp_notebook",
        "language": "de-DE",
        "plural_forms": "nplurals=2; plural=n!=1;",
    }
    translation = {"": head}
    for text, plural in re.findall(
        r'^msgid (".+")(?:\nmsgid_plural (".+"))?', catalogue, re.MULTILINE
    ):
        key, *texts = [json.loads(each) for each in (text, text, plural) if each]
        translation[key] = [f"⟦{each}⟧" for each in texts]
    return translation


@pytest.mark.oldest_jupyterlab
def test_all_its_texts_are_translated_as_jupyterlab_does_it(translated_server, context):
    server = translated_server
    notebook = NotebookPage(context.new_page())
    shutil.copy(CATALOGUE.parents[1] / "notebooks" / "quickstart.ipynb", server.folder)
    notebook.open(server, "quickstart.ipynb", app="lab")
    panel = SidePanel(notebook).open()
    panel.expect_text("⟦not loaded⟧")
    panel.button("⟦Connect an assistant⟧").click()
    panel.expect_text("⟦Not found: ")
    notebook.run_all()
    panel.expect_text("⟦live⟧")
    notebook.run("top_customers('EU')")
    notebook.run("%mcp call top_customers region='EU'")
    panel.section("⟦Last calls⟧").get_by_role("button", name="top_customers(").click()
    panel.expect_text("⟦Run again⟧")
    line = notebook.page.locator(".jp-mcp-line").first
    expect(line).to_contain_text("⟦tool⟧ · ⟦1 call⟧ · ⟦read-only⟧", timeout=SOON)
    notebook.photograph("side_panel_translated", panel.place)
    assert panel.place.evaluate(UNTRANSLATED, DATA) == []
    notebook.shut_down()


UNTRANSLATED = r"""(panel, data) => {
    const texts = [];
    const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        const rest = node.data.replace(/⟦[^⟦⟧]*⟧/g, "");
        if (/\p{L}{2}/u.test(rest) && !node.parentElement.closest(data)) {
            texts.push(node.data);
        }
    }
    for (const element of panel.querySelectorAll("[aria-label], [title]")) {
        for (const name of ["aria-label", "title"]) {
            const text = element.getAttribute(name);
            if (text && !text.includes("⟦") && !element.matches(data)) {
                texts.push(`${name}: ${text}`);
            }
        }
    }
    return texts;
}"""
