"""The side panel, as its user sees it in JupyterLab and Notebook 7, while assistants call."""

import json
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import assistant as assistants
import psutil
import pytest
from lab_page import SOON, THEMES
from looks import find_flaws, find_violations
from mcp_types import Implementation
from playwright.sync_api import expect
from side_panel import MORE, TOOLS, SidePanel, busy, find_wide, open_panel

pytestmark = pytest.mark.browser
APPS = ("lab", "notebook")
EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'


@pytest.mark.oldest_jupyterlab
@pytest.mark.parametrize("app", APPS)
def test_calls_are_seen_and_stopped_while_a_cell_runs(server, open_notebook, find_assistant, app):
    notebook = open_notebook("quickstart.ipynb", app=app)
    panel, assistant = open_panel(notebook, find_assistant)
    if app == "notebook":  # its sidebars have no icons
        notebook.page.evaluate("() => window.jupyterapp.shell.collapseRight()")
        expect(panel.place).not_to_be_visible()
        notebook.page.locator("[data-jp-item-name=mcp-notebook]").get_by_role("button").click()
    panel.expect_text("live")
    assistant.call("plot_rain", year=2015)
    assistant.call("rain_in", city="Atlantis")
    assert "Did you mean 'plot_rain'?" in assistant.call("plot_rian", year=2015)
    panel.expect_text("Unknown tool: 'plot_rian'.", section="Last calls")
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


LOCK = """
import json, os, pathlib
schema = {"type": "object", "properties": {"town": {"type": "string"}}}
path = pathlib.Path(os.environ["JPY_SESSION_NAME"]).with_suffix(".tools.lock")
entries = {"rain_in": {"kind": "tool", "input_schema": schema}}
path.write_text(json.dumps({"locked": "2026-11-28", "entries": entries}));
"""


def test_what_changed_since_a_tool_was_locked_is_shown_and_a_click_locks_it_again(
    open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, _ = open_panel(notebook, find_assistant)
    notebook.run(LOCK)
    panel.expect_text("Changed since it was locked on 28 Nov 2026: `town` was", section="Tools")
    panel.button("Show what changed in rain_in").click()
    panel.expect_text("`city` was added and is required: breaking", section="Tools")
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"side_panel_lock_{theme}", panel.place)
        assert find_violations(panel.place) == []
    panel.button("Lock rain_in again, as it is now").click()
    name = Path(urlsplit(notebook.page.url).path).stem
    panel.expect_text(f"Locked rain_in as it is now, in {name}.tools.lock.")
    expect(panel.section("Tools").get_by_text("Changed since")).to_have_count(0, timeout=SOON)


def test_prompts_and_skills_and_calls_of_prompts_are_marked(open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    panel, _ = open_panel(notebook, find_assistant)
    cell = notebook.add_cell("%%mcp_prompt report(year: int)\nReport on {year}.")
    notebook.run_cell(cell)
    skill = notebook.add_cell("%%mcp_skill weekly\nUse this for a week.")
    notebook.run_cell(skill)
    notebook.run("%mcp call report year=2026")
    panel.expect_text("report(year=2026)prompt", section="Last calls")
    rows = panel.section("Tools").locator(".jp-mcp-row")
    expect(rows.filter(has_text="report")).to_contain_text("prompt1 call")
    expect(rows.filter(has_text="weekly")).to_contain_text("skill")
    expect(rows.filter(has_text="rain_in").locator(".jp-mcp-badge")).to_have_count(0)
    expect(notebook.cells.nth(cell).locator(".jp-mcp-line")).to_have_text("prompt · 1 call")
    expect(notebook.cells.nth(skill).locator(".jp-mcp-line")).to_have_text("skill")
    expect(notebook.page.locator(".jp-mcp-status-item")).to_contain_text("1 prompt, 1 skill")
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"side_panel_kinds_{theme}", panel.place)
        assert find_violations(panel.place) == []


@pytest.mark.oldest_jupyterlab
def test_a_question_comes_to_a_closed_panel_and_is_answered_while_a_cell_runs(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    notebook.run_all()
    notebook.run(MORE)
    assistant = find_assistant(notebook.run("%mcp serve"))
    panel = SidePanel(notebook)
    expect(panel.place).not_to_be_visible()
    with busy(server, notebook):
        deleting = assistant.start_call("delete_orders", customer="Ada")
        message = notebook.page.locator(".Toastify__toast, .jp-toastContainer").first
        expect(message).to_contain_text("may delete_orders run?", timeout=SOON)
        notebook.photograph("side_panel_notification", message)
        notebook.page.get_by_role("button", name="Show", exact=True).first.click()
        panel.expect_text('customer = "Ada"', section="Questions")
        panel.expect_text("before = 2020 (default)", section="Questions")
        notebook.photograph("side_panel_question", panel.place)
        assert find_violations(panel.section("Questions")) == []
        panel.answer("Allow")
        assert deleting.result(60) == "deleted those of Ada"
        expect(panel.section("Questions")).to_have_count(0, timeout=SOON)
        denied = assistant.start_call("delete_orders", customer="Bob")
        panel.answer("Deny")
        assert "did not allow it" in denied.result(60)
    notebook.wait_until_idle()
    expect(notebook.page.locator(".jp-Notebook")).not_to_contain_text("%mcp allow")


@pytest.mark.oldest_jupyterlab
def test_after_a_reload_and_a_restart_it_says_at_once_what_is_so(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("forecast_sales", seconds=0)
    panel.expect_text("forecast_sales(", section="Last calls")
    notebook.save()
    notebook.reload()
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
    notebook.run("import atexit, time; _ = atexit.register(time.sleep, 2)")
    ask_server(notebook, "POST", "/restart", waits=False)
    panel.expect_text("restarting")
    # There is no button before the new process is there: what is sent to the old one is lost.
    panel.button("Load mcp_notebook").click()
    panel.expect_text("live")
    notebook.start_cell(notebook.add_cell("import os; os.kill(os.getpid(), 9)"))
    notebook.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=SOON)  # it says so, too
    panel.expect_text("not loaded")
    panel.button("Load mcp_notebook").click()
    panel.expect_text("live")
    ask_server(notebook, "DELETE")
    panel.expect_text("gone")


def ask_server(notebook, method, path="", *, waits=True):
    """Do something to a notebook's kernel as another program would, by Jupyter's REST API."""
    notebook.page.evaluate(
        """([method, path, waits]) => {
            const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
            const answer = fetch(`/api/kernels/${kernel.id}${path}`, {method, headers: {
                'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)[1]}});
            return waits ? answer : null;
        }""",
        [method, path, waits],
    )


def test_a_page_of_another_origin_sees_and_does_nothing(
    server, open_notebook, find_assistant, context
):
    """Another server on the same host: the browser sends it the cookies, and shows it the token."""
    notebook = open_notebook("quickstart.ipynb")
    panel, _ = open_panel(notebook, find_assistant)
    panel.expect_text("plot_rain", section="Tools")
    kernel = notebook.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id"
    )
    with static_page("<title>Evil</title>") as url:
        page = context.new_page()
        page.goto(url)
        assert "_xsrf" in page.evaluate("() => document.cookie")
        done = page.evaluate(EVIL_PAGE, [server.url, kernel])
    assert done["seen"] == []
    assert set(done["failed"]) == {"read", "write", "header", "connect"}
    tools = panel.section("Tools")
    expect(tools.get_by_role("switch", name=re.compile("plot_rain"))).to_be_checked()
    switch = panel.place.get_by_role("switch", name="Clients may propose cells")
    expect(switch).not_to_be_checked()


EVIL_PAGE = """async ([url, kernel]) => {
    const api = url + 'mcp-notebook/api/';
    const xsrf = document.cookie.match(/_xsrf=([^;]*)/)[1];
    const seen = [], failed = [];
    const attempt = async (name, request) => {
        try { seen.push([name, await (await request()).text()]); } catch { failed.push(name); }
    };
    const make = action => (
        {method: 'POST', credentials: 'include', body: JSON.stringify({kernel, ...action})});
    const options = make({action: 'switch', tool: 'plot_rain', on: false});
    const other = make({action: 'propose', on: true});
    const path = `${api}actions?_xsrf=${encodeURIComponent(xsrf)}`;
    await attempt('read', () => fetch(api + 'state', {credentials: 'include'}));
    await attempt('header', () =>
        fetch(api + 'actions', {...options, headers: {'X-XSRFToken': xsrf}}));
    // Without a preflight; the answer could not be read, but the server gets it.
    await attempt('write', () => fetch(path, options));
    await fetch(path, {...options, mode: 'no-cors'});
    await fetch(path, {...other, mode: 'no-cors'});
    await new Promise(done => {
        const socket = new WebSocket(api.replace('http', 'ws') + 'changes');
        socket.onmessage = event => seen.push(['connect', event.data]);
        socket.onclose = () => { failed.push('connect'); done(); };
    });
    return {seen, failed};
}"""


@contextmanager
def static_page(html):
    """Serve a page on another port of the same host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def test_an_idle_page_sends_and_gets_nothing_and_costs_no_time(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    kernel = int(notebook.run("import os; print(os.getpid())").inner_text())
    frames, requests = [], []

    def follow(socket):
        if "mcp-notebook" in socket.url:
            for event in ("framesent", "framereceived"):
                socket.on(event, lambda frame: frames.append(frame))  # noqa: PLW0108 - Playwright marks it

    notebook.page.on("websocket", follow)
    notebook.page.on("request", lambda request: requests.append(request.url))
    notebook.reload()
    panel.open()
    assistant.stay()
    panel.expect_text("assistant 1.0", section="Clients")
    assert frames
    frames.clear()
    requests.clear()
    processes = [psutil.Process(server.pid), psutil.Process(kernel)]
    before = list(map(find_cpu_seconds, processes))
    notebook.page.wait_for_timeout(5_000)  # so long, nothing happens
    after = list(map(find_cpu_seconds, processes))
    assert frames == []
    assert [url for url in requests if "mcp-notebook" in url] == []
    spent = [round(end - begin, 2) for begin, end in zip(before, after, strict=True)]
    assert max(spent) < 0.5, spent


def find_cpu_seconds(process):
    times = process.cpu_times()
    return times.user + times.system


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
    panel.answer("Deny")
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
    for n in range(5):
        assistant.call_often(100, f"make_report_number_{n}", text="ten words " * 30)
    panel.expect_text("And 475 earlier calls", section="Last calls")
    expect(panel.section("Tools").get_by_text("100 calls")).to_have_count(5)
    for width in (600, 1100, 1600):
        notebook.page.set_viewport_size({"width": width, "height": 900})
        notebook.photograph(f"side_panel_many_{width}", panel.place)
        assert find_wide(panel.place) == []
    for width in (250, 420):
        panel.set_width(width)
        notebook.photograph(f"side_panel_many_at_{width}", panel.place)
        assert find_wide(panel.place) == []
        assert find_flaws(panel.section("Tools")) == []
    notebook.page.set_viewport_size({"width": 1100, "height": 900})
    panel.place.get_by_label("Filter tools").fill("number_41")
    expect(panel.section("Tools").get_by_role("switch")).to_have_count(1)


@pytest.mark.oldest_jupyterlab
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
    # The cell calls the tool as its client did: the number is a float.
    expect(notebook.page.locator(".jp-Notebook")).to_contain_text("0.0 s", timeout=SOON)
    panel.expect_text("0.0 s", section="Last calls")


def test_copy_takes_the_picture_and_the_text(server, open_notebook, find_assistant):
    notebook = open_notebook("quickstart.ipynb")
    more = """
@mcp_tool
def plot_and_say(year: int) -> list:
    "Rain per month, in short."
    return [f"rain of {year}", plot_rain(year)]
"""
    panel, assistant = open_panel(notebook, find_assistant, TOOLS + more)
    for tool, types in {
        "plot_rain": ["image/png"],
        "plot_and_say": ["image/png", "text/plain"],
    }.items():
        assistant.call(tool, year=2015)
        call = panel.section("Last calls").get_by_role("button", name=f"{tool}(year=2015)")
        call.click()
        notebook.page.evaluate("() => navigator.clipboard.writeText('')")
        panel.button("Copy the result").click()
        notebook.page.wait_for_function(COPIED, arg=types)
        panel.expect_text("The picture was copied.")
        call.click()
    call.click()
    notebook.page.evaluate(PLAIN_HTTP)
    panel.button("Copy the result").click()
    panel.expect_text("Only the text was copied")
    notebook.page.evaluate("() => delete navigator.clipboard")
    assert "rain of 2015" in notebook.page.evaluate("() => navigator.clipboard.readText()")


PLAIN_HTTP = "() => Object.defineProperty(navigator, 'clipboard', {configurable: true})"
COPIED = """async types => {
    const [item] = await navigator.clipboard.read();
    if (item.types.toSorted().join() !== types.join()) {
        return false;
    }
    return (await createImageBitmap(await item.getType("image/png"))).width === 640;
}"""


LATE = "%%mcp_tool\ndef late() -> int:\n    'Late.'\n    return len(orders)"


def test_after_a_restart_the_calls_stay_and_a_click_brings_the_tools_back(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    assistant.call("rain_in", city="Atlantis")
    panel.expect_text("rain_in(city='Atlantis')", section="Last calls")
    unload = notebook.add_cell("%unload_ext mcp_notebook")
    notebook.run_cell(unload)
    notebook.set_source(unload, "")
    panel.expect_text("not loaded")
    notebook.restart()
    expect(panel.place).not_to_contain_text("gone until")
    notebook.run("%load_ext mcp_notebook")
    panel.expect_text("live")
    notebook.run(MORE)
    # Its bridge finds the new kernel by itself.
    names = {"forecast_sales", "clean_orders", "plot_rain", "rain_in", "delete_orders", "train"}
    assistant.wait_for_tools(*names)
    assistant.call("rain_in", city="Oz")
    panel.expect_text("rain_in(city='Oz')", section="Last calls")
    late = notebook.add_cell(LATE)
    notebook.run_cell(late)
    panel.expect_text("late", section="Tools")
    notebook.restart()
    panel.expect_text("7 tools are gone until their cells run.")
    panel.expect_text("no data for Oz", section="Calls before the restart at .*")
    for theme in THEMES:
        notebook.use_theme(theme)
        notebook.photograph(f"side_panel_restarted_{theme}", panel.place)
        assert find_violations(panel.place) == []
    panel.button("Run their cells and all above").click()
    panel.expect_text("late", section="Tools")
    expect(panel.place).not_to_contain_text("gone until")
    panel.expect_text("no data for Oz", section="Calls before the restart at .*")
    notebook.restart()
    panel.expect_text("8 tools are gone until their cells run.")
    notebook.set_source(late, LATE.replace("late", "later"))
    notebook.run("%load_ext mcp_notebook")
    notebook.run_cell(late)
    panel.expect_text("later", section="Tools")
    panel.expect_text("7 tools are gone until their cells run.")
    notebook.page.evaluate(
        "() => { const model = window.jupyterapp.shell.currentWidget.content.model.sharedModel;"
        " model.deleteCellRange(0, model.cells.length); }"
    )
    notebook.run("'a cell'")
    expect(panel.place).not_to_contain_text("gone until")


def test_no_cell_is_said_to_bring_back_tools_that_were_unloaded(open_notebook, find_assistant):
    """The page learns of it late, when the cell has ended: then the kernel tells nothing more."""
    notebook = open_notebook("quickstart.ipynb")
    late = []

    def connect(socket):
        server = socket.connect_to_server()

        def pass_on(message):
            if json.loads(message).get("changes", "") is None:
                late.append(partial(socket.send, message))
            else:
                socket.send(message)

        server.on_message(pass_on)

    notebook.page.route_web_socket(re.compile("mcp-notebook/api/changes"), connect)
    notebook.reload()
    panel, _ = open_panel(notebook, find_assistant)
    panel.expect_text("rain_in", section="Tools")
    notebook.run("%unload_ext mcp_notebook")
    notebook.wait_until_idle()
    while not late:
        notebook.page.wait_for_timeout(10)
    late.pop()()
    panel.expect_text("not loaded")
    notebook.restart()
    notebook.run("1")
    expect(panel.place).not_to_contain_text("gone until", timeout=1_000)


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


SECRET = """
from pydantic import SecretStr

@mcp_tool(run="thread")
def sign_in(user: str, password: SecretStr) -> str:
    "Sign in."
    return f"{user} is in"
"""


def test_a_call_with_a_secret_is_inserted_as_code_with_its_gap_and_does_not_run(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant, TOOLS + SECRET)
    # As with the setting "Default cell type": what is inserted is code all the same.
    notebook.page.evaluate(
        """() => {
            const {content} = window.jupyterapp.shell.currentWidget;
            content.notebookConfig = {...content.notebookConfig, defaultCell: 'markdown'};
        }"""
    )
    assistant.call("sign_in", user="ann", password="hunter2")
    panel.section("Last calls").get_by_role("button", name=re.compile("sign_in")).click()
    panel.expect_text("A secret argument was not recorded", section="Last calls")
    expect(panel.button("Run again")).to_have_count(0)
    notebook.photograph("side_panel_secret", panel.place)
    panel.button("Insert as cell").click()
    cell = notebook.page.locator(".jp-CodeCell").filter(has_text="Secrets are not recorded")
    expect(cell).to_contain_text('"password": ...}', timeout=SOON)
    expect(cell.locator(".jp-InputPrompt")).to_have_text("[ ]:")


def test_the_second_click_of_a_double_click_answers_no_other_question(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, assistant = open_panel(notebook, find_assistant)
    calls = []
    for customer in ("Ada", "Bob"):
        calls.append(assistant.start_call("delete_orders", customer=customer))
        panel.expect_text(f'customer = "{customer}"', section="Questions")
    # The second click comes just when the next question has moved to where the first one was.
    notebook.page.evaluate(
        """() => {
            const panel = document.querySelector('#mcp-notebook-panel');
            new MutationObserver((_, observer) => {
                const buttons = panel.querySelectorAll('.jp-mcp-question button[aria-label=Allow]');
                if (buttons.length === 1) {
                    observer.disconnect();
                    window.clicked = true;
                    buttons[0].click();
                }
            }).observe(panel, {childList: true, subtree: true});
        }"""
    )
    panel.answer("Allow")
    assert calls[0].result(60) == "deleted those of Ada"
    notebook.page.wait_for_function("() => window.clicked")
    panel.expect_text('customer = "Bob"', section="Questions")
    panel.answer("Deny")
    assert "did not allow it" in calls[1].result(60)


def test_a_lost_stream_is_shown_unless_it_is_open_again_at_once(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    page, sockets, is_down = notebook.page, [], [False]

    def connect(socket):
        if is_down[0]:
            socket.close()
            return
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket(re.compile("mcp-notebook/api/changes"), connect)
    # The server that is asked for its extension does not answer.
    page.route(re.compile("mcp-notebook/api/state"), lambda _: None)
    notebook.reload()
    panel, _ = open_panel(notebook, find_assistant)
    panel.expect_text("live")
    words = page.evaluate_handle(
        """() => {
            const words = [];
            const panel = document.querySelector('#mcp-notebook-panel');
            new MutationObserver(() => words.push(
                panel.querySelector('.jp-mcp-word').textContent
            )).observe(panel, {childList: true, subtree: true, characterData: true});
            return words;
        }"""
    )
    sockets[0].close()
    notebook.run("@mcp_tool\ndef added_later(): 'Later.'")
    panel.expect_text("added_later", section="Tools")
    assert len(sockets) == 2
    assert set(words.json_value()) <= {"live"}
    is_down[0] = True
    sockets[1].close()
    panel.expect_text("reconnecting")
    panel.expect_text("What is shown here may be old.")
    notebook.photograph("side_panel_reconnecting", panel.place)
    is_down[0] = False
    panel.button("Try again").click()
    panel.expect_text("live")


def test_the_page_of_a_proxy_is_a_sentence_and_no_error_of_json(
    server, open_notebook, find_assistant
):
    notebook = open_notebook("quickstart.ipynb")
    panel, _ = open_panel(notebook, find_assistant)
    answers = {
        502: "a proxy before it, answered with error 502. Try again in a moment.",
        200: "did not answer as expected (HTTP 200). Reload the page",
    }
    for status, sentence in answers.items():

        def answer(route):
            route.fulfill(status=status, content_type="text/html", body="<h1>A page</h1>")  # noqa: B023

        notebook.page.route(re.compile("mcp-notebook/api/actions"), answer)
        panel.section("Tools").get_by_role("switch", name=re.compile("plot_rain")).click()
        panel.expect_text(sentence)
