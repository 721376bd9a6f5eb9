"""The side panel, as its user sees it in JupyterLab and Notebook 7, while assistants call."""

import re

import assistant as assistants
import pytest
from lab_page import SOON, THEMES
from looks import find_violations
from mcp_types import Implementation
from playwright.sync_api import expect
from side_panel import SidePanel
from test_panel import TOOLS, busy

pytestmark = pytest.mark.browser
APPS = ("lab", "notebook")
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
EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'


def open_panel(notebook, find_assistant, source=MORE):
    """Return the panel beside a notebook with tools, and an assistant that can call them."""
    panel = SidePanel(notebook).open()
    notebook.run_all()
    notebook.run(source)
    return panel, find_assistant(notebook.run("%mcp serve"))


@pytest.mark.parametrize("app", APPS)
def test_calls_are_seen_and_stopped_while_a_cell_runs(server, open_notebook, find_assistant, app):
    notebook = open_notebook("quickstart.ipynb", app=app)
    panel, assistant = open_panel(notebook, find_assistant)
    panel.expect_text("live")
    assistant.call("plot_rain", year=2015)
    assistant.call("rain_in", city="Atlantis")
    panel.expect_text("no data for Atlantis", section="Last calls")
    expect(panel.section("Last calls").locator("img")).to_have_count(1)
    with busy(server, notebook):
        training = assistant.start_call("train", epochs=1_000)
        running = assistant.start_call("forecast_sales", seconds=60)
        waiting = assistant.start_call("clean_orders", seconds=60)
        panel.expect_text("waiting for the end of the cell", section="Running calls")
        expect(panel.place.get_by_role("progressbar")).to_have_count(1, timeout=SOON)
        panel.expect_text("loss 0.", section="Running calls")
        for theme in THEMES:
            notebook.use_theme(theme)
            notebook.photograph(f"side_panel_{app}_{theme}", panel.place)
            assert find_violations(panel.place) == []
        notebook.use_theme("light")
        for tool, call in {
            "forecast_sales": running,
            "train": training,
            "clean_orders": waiting,
        }.items():
            panel.button(f"Stop {tool}").click()
            assert "The user stopped the call" in call.result(60)
        panel.expect_text("None is running.", section="Running calls")


@pytest.mark.parametrize("app", APPS)
def test_a_question_comes_to_a_closed_panel_and_is_answered_while_a_cell_runs(
    server, open_notebook, find_assistant, app
):
    notebook = open_notebook("quickstart.ipynb", app=app)
    notebook.run_all()
    notebook.run(MORE)
    assistant = find_assistant(notebook.run("%mcp serve"))
    panel = SidePanel(notebook)
    expect(panel.place).not_to_be_visible()
    with busy(server, notebook):
        deleting = assistant.start_call("delete_orders", customer="Ada")
        message = notebook.page.locator(".Toastify__toast, .jp-toastContainer").first
        expect(message).to_contain_text("may delete_orders run?", timeout=SOON)
        notebook.photograph(f"side_panel_notification_{app}", message)
        notebook.page.get_by_role("button", name="Show", exact=True).first.click()
        panel.expect_text('customer = "Ada"', section="Questions")
        notebook.photograph(f"side_panel_question_{app}", panel.place)
        assert find_violations(panel.section("Questions")) == []
        panel.button("Allow").click()
        assert deleting.result(60) == "deleted those of Ada"
        expect(panel.section("Questions")).to_have_count(0, timeout=SOON)
        denied = assistant.start_call("delete_orders", customer="Bob")
        panel.button("Deny").click()
        assert "did not allow it" in denied.result(60)
    notebook.wait_until_idle()
    expect(notebook.page.locator(".jp-Notebook")).not_to_contain_text("%mcp allow")


def test_after_a_reload_and_a_restart_it_says_at_once_what_is_so(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("forecast_sales", seconds=0)
    panel.expect_text("forecast_sales(", section="Last calls")
    notebook.save()
    notebook.page.reload()
    notebook.page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady", timeout=SOON
    )
    panel.open()
    panel.expect_text("forecast_sales(", section="Last calls")
    running = assistant.start_call("forecast_sales", seconds=60)
    panel.expect_text("forecast_sales(seconds=60", section="Running calls")
    notebook.restart()
    assert "restarted" in running.result(60)
    panel.expect_text("not loaded")
    expect(panel.section("Tools")).to_have_count(0)
    panel.button("Load mcp_notebook").click()
    panel.expect_text("live")
    notebook.page.evaluate(
        """id => fetch(`/api/kernels/${id}`, {method: 'DELETE', headers: {
            'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)[1]}})""",
        notebook.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id"
        ),
    )
    panel.expect_text("gone")


def test_what_clients_and_tools_say_is_text_and_nothing_of_it_runs(
    server, open_notebook, find_assistant, monkeypatch
):
    monkeypatch.setattr(assistants, "PROGRAM", Implementation(name=EVIL, version="1"))
    source = f"""{MORE}
@mcp_tool(run="thread")
def echo(text: str) -> str:
    {EVIL!r}
    return text

@mcp_tool(run="thread")
def fail(text: str, ctx: Context) -> str:
    "Fail."
    ctx.progress(1, 2, text)
    while not pathlib.Path(text).exists() and not ctx.cancelled: time.sleep(0.01)
    raise ValueError(text)
"""
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant, source)
    assert assistant.call("echo", text=EVIL) == EVIL
    panel.section("Last calls").get_by_role("button", name=re.compile("echo")).click()
    panel.expect_text(f'"text": "{EVIL}"'.replace('"window', '\\"window').replace('1">', '1\\">'))
    assistant.start_call("delete_orders", customer=EVIL)
    panel.expect_text("onerror", section="Questions")
    failing = assistant.start_call("fail", text=EVIL)
    panel.expect_text(EVIL, section="Running calls")
    panel.expect_text(EVIL, section="Clients")
    assert panel.place.locator("img, script").count() == 0
    notebook.photograph("side_panel_hostile", panel.place)
    panel.button("Stop fail").click()
    failing.result(60)
    panel.button("Deny").click()
    assert notebook.page.evaluate("() => window.pwned") is None


def test_many_tools_and_long_calls_stay_within_the_panel_at_any_width(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    tools = "\n".join(
        f'@mcp_tool(run="thread")\ndef make_report_number_{n}(text: str = "") -> str:\n'
        f'    "Report {n} about a rather long subject."\n    return text'
        for n in range(60)
    )
    panel, assistant = open_panel(notebook, find_assistant, f"{MORE}\n{tools}")
    for n in range(40):
        assistant.call(f"make_report_number_{n % 7}", text="ten words " * 30)
    panel.expect_text("And 15 earlier calls", section="Last calls")
    for width in (600, 1100, 1600):
        notebook.page.set_viewport_size({"width": width, "height": 900})
        notebook.photograph(f"side_panel_many_{width}", panel.place)
        assert find_wide(panel.place) == []
    notebook.page.set_viewport_size({"width": 1100, "height": 900})
    panel.place.get_by_label("Filter tools").fill("number_41")
    expect(panel.section("Tools").get_by_role("switch")).to_have_count(1)


def find_wide(place):
    """Return what is wider than the panel."""
    return place.evaluate(
        """panel => [...panel.querySelectorAll("*")].filter(element =>
            element.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1
        ).map(element => element.outerHTML.slice(0, 100))"""
    )


def test_a_tool_leads_to_its_cell_and_is_taken_from_clients(server, open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("forecast_sales", seconds=0)
    active = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    before = notebook.page.evaluate(active)
    panel.section("Tools").get_by_role("button", name="forecast_sales").click()
    cell = notebook.page.evaluate(active)
    assert cell != before
    expect(notebook.cells.nth(cell)).to_contain_text("def forecast_sales")

    switch = panel.section("Tools").get_by_role("switch", name="Clients may call forecast_sales")
    switch.click()
    panel.expect_text("Clients no longer see forecast_sales.")
    names = {"top_customers", "clean_orders", "plot_rain", "rain_in", "delete_orders", "train"}
    assistant.wait_for_tools(*names)
    assert "switched it off" in assistant.call("forecast_sales", seconds=0)
    expect(switch).not_to_be_checked(timeout=SOON)
    switch.click()
    assistant.wait_for_tools(*names, "forecast_sales")

    last = panel.section("Last calls")
    last.get_by_role("button", name=re.compile("forecast_sales")).last.click()
    panel.button("Run again").click()
    # The cell calls the function itself.
    expect(notebook.page.locator(".jp-Notebook")).to_contain_text("'0 s'", timeout=SOON)
    panel.expect_text("0 s", section="Last calls")


def test_a_call_into_a_notebook_that_is_not_in_front_is_seen(server, open_notebook, find_assistant):
    other = open_notebook("quickstart.ipynb")
    other.run_all()
    other.run(TOOLS)
    assistant = find_assistant(other.run("%mcp serve"))
    notebook = open_notebook("quickstart.ipynb")
    panel = SidePanel(notebook).open()
    panel.expect_text("not loaded")
    running = assistant.start_call("forecast_sales", seconds=60)
    panel.expect_text("1 running call", section="All notebooks")
    SidePanel(other).open().button("Stop forecast_sales").click()
    assert "The user stopped the call" in running.result(60)
    panel.expect_text("5 tools", section="All notebooks")
