"""What can be said of how HTML looks: whether all can read it, reach it, and see it whole."""

from axe_playwright_python.sync_playwright import Axe
from lab_page import THEMES, NotebookPage
from playwright.sync_api import Frame, Locator, Page

MARK = "data-looked-at"
_CUT_OFF = """output => {
    const area = output.getBoundingClientRect();
    const describe = element => `<${element.localName}> ${element.textContent.slice(0, 60)}`;
    return [...output.querySelectorAll("*")].filter(element => {
        const style = getComputedStyle(element);
        const wide = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
        const hidden = wide && ["hidden", "clip"].includes(style.overflowX);
        return hidden || element.getBoundingClientRect().right > area.right + 1;
    }).map(describe);
}"""


def find_flaws(output: Locator) -> list[str]:
    """Return what is wrong with a cell's output: what Axe finds, and text that is cut off."""
    return find_violations(output) + [f"cut off: {text}" for text in output.evaluate(_CUT_OFF)]


def find_violations(output: Locator) -> list[str]:
    """Return what Axe finds: contrast, names, keyboard, by the guidelines (WCAG) and this theme."""
    output.evaluate(f"output => output.setAttribute({MARK!r}, '')")
    found = run_axe(output.page, f"[{MARK}]")
    output.evaluate(f"output => output.removeAttribute({MARK!r})")
    return found


def run_axe(page: Page | Frame, selector: str) -> list[str]:
    """Return what Axe finds in an element of a page or frame."""
    # Of headings, landmarks and the like, the page around it decides.
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = Axe().run(page, selector, options=options).response["violations"]
    return [
        f"{flaw['help']}: {node['html']}: {node['failureSummary']}"
        for flaw in found
        for node in flaw["nodes"]
    ]


def look_at(name: str, notebook: NotebookPage, shown: Locator) -> None:
    """Keep pictures of an output, and look for flaws, in both themes."""
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"{name}_{theme}", shown)
        assert find_flaws(shown) == []
