"""Live views of results, shown by MCP Apps' own host in a frame that may load nothing."""

import json
import subprocess
from pathlib import Path

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from clients import TOKEN, http_bridge, tool_kernel
from lab_page import SCREENSHOTS, SOON
from live import until
from npm_packages import bring_in
from playwright.sync_api import expect

from mcp_notebook.bridge.views.pages import MIME_TYPE, read_result_page

pytestmark = pytest.mark.browser

HOST = Path(__file__).parent / "views_host"
ERAS = ("2025-11-25", "2026-07-28")
EXTENSION = {"io.modelcontextprotocol/ui": {"mimeTypes": [MIME_TYPE]}}
RESOURCES = {"serverResources": {}, "serverTools": {}, "updateModelContext": {}, "downloadFile": {}}
TOOLS = """%%mcp_tool --read-only
import pandas as pd
import numpy as np

HOSTILE = "<img src=x onerror=top.postMessage('ran','*')>"
rng = np.random.default_rng(0)
weather = pd.DataFrame({
    "city": rng.choice(["Seattle", "New York", HOSTILE], 5_000),
    "rain": rng.gamma(2, 3, 5_000).round(2),
    "day": pd.Timestamp("2012-01-01") + pd.to_timedelta(np.arange(5_000), "D"),
    HOSTILE: "x" * 300,
})
weather.loc[::10, "rain"] = np.nan

def rain() -> pd.DataFrame:
    "Rain."
    return weather
"""
GUIDE = """%%mcp_tool --read-only --ui
measured = pd.DataFrame({
    "date": pd.Timestamp("2012-01-01") + pd.to_timedelta(np.arange(1_461), "D"),
    "rain_mm": rng.gamma(0.4, 8, 1_461).round(1),
    "temp_max": (16 + 9 * np.sin(np.arange(1_461) / 58 - 1.8) + rng.normal(0, 3, 1_461)).round(1),
    "wind": rng.gamma(5, 0.65, 1_461).round(1),
    "weather": rng.choice(["rain", "sun", "sun", "fog", "snow"], 1_461),
})

def weather_days() -> pd.DataFrame:
    "The days of four years."
    return measured

def temperatures():
    "Wind and warmth of each day."
    import plotly.express as px
    return px.scatter(measured, x="wind", y="temp_max", color="weather", render_mode="svg")
"""
PLOTS = """%%mcp_tool --read-only --ui
def plotly_plot():
    "A plotly figure."
    import plotly.graph_objects as go
    return go.Figure(go.Scatter(x=[1, 2, 3], y=[3, 1, 2]))

def altair_plot():
    "An altair chart."
    import altair as alt
    return alt.Chart(weather.head(50)).mark_point().encode(x="rain", y="city")

def bokeh_plot():
    "A bokeh plot."
    from bokeh.plotting import figure
    plot = figure(height=300)
    plot.line([1, 2, 3], [3, 1, 2])
    return plot

def page():
    "HTML."
    from IPython.display import HTML
    return HTML(f"<h2>Hello</h2>{HOSTILE}<script>top.postMessage('ran', '*')</script>")
"""
WIDE = """%%mcp_tool --read-only
def wide() -> pd.DataFrame:
    "500 columns."
    return pd.DataFrame({f"column {number}": [number] for number in range(500)})
"""
OWN_VIEW = """%%mcp_view station
<style>body { background: var(--color-background-primary, white) }</style>
<h1></h1>
<ul></ul>
<button>Compare</button>
<p></p>
<script>
const find = name => document.querySelector(name);
notebook.onresult(result => {
  find("h1").textContent = `${result.arguments.city ?? "Anywhere"}: ${result.data.length}`;
  for (const row of result.data) {
    const item = document.createElement("li");
    item.textContent = row.day;
    find("ul").append(item);
  }
});
find("button").onclick = async () => {
  const mean = await notebook.call("mean_rain", { city: "Seattle" });
  await notebook.send(`The mean is ${mean.data}.`);
  try {
    await notebook.call("no_such_tool");
  } catch (error) { find("p").textContent = error.message; }
};
</script>
"""
OWN_TOOLS = """%%mcp_tool --read-only --ui station
def days() -> list[dict[str, str]]:
    "Days."
    return [{"day": HOSTILE}] * 30

def mean_rain(city: str) -> float:
    "Mean rain."
    return 7.5
"""


class Server:
    """Requests to an MCP server, as a host of views makes them.

    Args:
        url: The endpoint's.
        era: The version of MCP.
    """

    def __init__(self, url, era):
        self.url, self.era = url, era
        self.headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": era,
        }
        self.envelope = {}
        self.client = {"name": "host", "version": "1"}
        capabilities = {"extensions": EXTENSION}
        if era == ERAS[0]:
            params = {"protocolVersion": era, "capabilities": capabilities}
            answer = self.post("initialize", params | {"clientInfo": self.client})
            self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        else:
            prefix = "io.modelcontextprotocol/"
            self.envelope = {
                f"{prefix}protocolVersion": era,
                f"{prefix}clientInfo": self.client,
                f"{prefix}clientCapabilities": capabilities,
            }

    def post(self, method, params, number=1):
        """Send a request, and return the response."""
        headers = dict(self.headers)
        if self.envelope:
            params = params | {"_meta": self.envelope}
            headers["Mcp-Method"] = method
            if name := params.get("name") or params.get("uri"):
                headers["Mcp-Name"] = name
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return httpx2.post(self.url, json=message, headers=headers, timeout=3 * SOON / 1000)

    def ask(self, method, params, number=1):
        """Send a request, and return its result."""
        text = self.post(method, params, number).text
        lines = [line for line in text.splitlines() if line.startswith("data: {")]
        answer = json.loads(lines[-1].removeprefix("data: ") if lines else text)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        answer["result"].pop("resultType", None)
        return answer["result"]

    def find_tool(self, name):
        """Return a tool's entry in the list; None if it is not there yet."""
        listed = self.ask("tools/list", {})["tools"]
        return next((each for each in listed if each["name"] == name), None)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("v")


@pytest.fixture(scope="module")
def kernel(home):
    with tool_kernel(home, TOOLS, GUIDE, PLOTS, OWN_VIEW, OWN_TOOLS, name="weather") as kernel:
        yield kernel


@pytest.fixture(scope="module")
def url(home, kernel):
    with http_bridge(home) as served:
        yield served.url


@pytest.fixture(scope="module")
def script():
    """The host's script in one piece."""
    modules = bring_in(HOST)
    command = [modules / ".bin" / "esbuild", HOST / "host.js", "--bundle", "--format=iife"]
    return subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env={"NODE_PATH": str(modules), "PATH": "/usr/local/bin:/usr/bin:/bin"},
    ).stdout


@pytest.fixture
def open_view(chromium, url, script):
    """Return what calls a tool, and shows its result as a host does."""
    contexts = []

    def open_view(  # noqa: PLR0913 - what a host can be
        tool,
        era,
        *,
        capabilities=RESOURCES,
        width=720,
        theme="light",
        keep_meta=True,
    ):
        server = Server(url, era)
        form = until(lambda: server.find_tool(tool))
        page_uri = form["_meta"]["ui"]["resourceUri"]
        html = server.ask("resources/read", {"uri": page_uri})["contents"][0]["text"]
        result = server.ask("tools/call", {"name": tool, "arguments": {}})
        result = result if keep_meta else {"content": result["content"]}
        context = chromium.new_context(
            viewport={"width": width, "height": 700},
            color_scheme=theme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("request", lambda request: page.faults.append(request.url))
        page.expose_function("ask", server.ask)
        page.set_content("<!doctype html><body style='margin: 0'>")
        page.evaluate(
            "addEventListener('message', e => { if (e.data === 'ran') window.ran = true })"
        )
        page.add_script_tag(content=script)
        page.evaluate(
            "view => openView(view)",
            {
                "html": html,
                "input": {},
                "result": result,
                "capabilities": capabilities,
                "context": {
                    "theme": theme,
                    "displayMode": "inline",
                    "availableDisplayModes": ["inline", "fullscreen"],
                    "toolInfo": {"tool": form, "id": None},
                },
            },
        )
        return page

    yield open_view
    for context in contexts:
        for page in context.pages:
            assert page.faults == []
            assert not page.evaluate("window.ran")
        context.close()


def rows_of(view):
    """Return the cells of all rows that are shown."""
    return [row.locator("td").all_inner_texts() for row in view.locator("tbody tr").all()]


@pytest.mark.parametrize("era", ERAS)
def test_a_person_sorts_filters_and_turns_the_pages_of_a_table(open_view, era):
    page = open_view("rain", era)
    view = page.frame_locator("iframe")
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)
    view.get_by_role("button", name="Next page").click()
    expect(view.locator("#place")).to_have_text("51 to 100 of 5,000", timeout=SOON)
    sort = view.get_by_role("columnheader").filter(has_text="rain").get_by_title("Sort")
    sort.click()
    expect(view.locator("th[aria-sort=ascending]")).to_have_count(1, timeout=SOON)
    sort.click()
    expect(view.locator("th[aria-sort=descending]")).to_have_count(1, timeout=SOON)
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)
    rain = [float(row[1]) for row in rows_of(view)]
    assert rain == sorted(rain, reverse=True)
    view.get_by_role("button", name="Filter and summary of city").click()
    expect(view.locator("dl")).to_contain_text("distinct", timeout=SOON)
    view.get_by_label("Value").fill("seat")
    view.get_by_role("button", name="Filter", exact=True).click()
    expect(view.locator(".chips button")).to_have_text("city contains seat ✕", timeout=SOON)
    assert {row[0] for row in rows_of(view)} == {"Seattle"}
    view.locator(".chips button").click()
    expect(view.locator("#place")).to_contain_text("of 5,000", timeout=SOON)
    view.get_by_label("Search all columns").fill("onerror")
    expect(view.locator("#place")).not_to_contain_text("5,000", timeout=SOON)
    assert all("<img src=x" in row[0] for row in rows_of(view))


def test_what_a_person_picks_goes_to_the_assistant_the_clipboard_and_into_files(open_view):
    page = open_view("rain", ERAS[1])
    view = page.frame_locator("iframe")
    view.locator("tbody tr").nth(1).click(timeout=SOON)
    view.locator("tbody tr").nth(2).click()
    view.get_by_role("button", name="Send 2 to the assistant").click()
    expect(view.locator("#status")).to_contain_text("2 rows", timeout=SOON)
    (sent,) = page.evaluate("seen.contexts")
    picked = json.loads(sent["content"][0]["text"].partition("\n")[2])
    day = picked["columns"].index("day")
    assert [row[day] for row in picked["rows"]] == ["2012-01-02", "2012-01-03"]
    view.get_by_role("button", name="CSV").click()
    page.wait_for_function("() => seen.downloads.length")
    (download,) = page.evaluate("seen.downloads")
    (file,) = download["contents"]
    assert file["resource"]["mimeType"] == "text/csv"
    assert file["resource"]["uri"].endswith("/table.csv")
    assert len(file["resource"]["text"].splitlines()) == 5_001
    view.get_by_role("button", name="Refresh").click()
    page.wait_for_function("() => seen.asked.some(each => each.method === 'tools/call')")
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)


def test_a_host_without_resources_gets_rows_by_a_tool_and_one_without_either_a_sentence(open_view):
    page = open_view("rain", ERAS[1], capabilities={"serverTools": {}})
    view = page.frame_locator("iframe")
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)
    assert {each["method"] for each in page.evaluate("seen.asked")} == {"tools/call"}
    page = open_view("rain", ERAS[1], capabilities={})
    view = page.frame_locator("iframe")
    expect(view.locator("#status")).to_contain_text("only what was sent", timeout=SOON)


@pytest.mark.parametrize(
    ("tool", "drawn"),
    [("plotly_plot", ".main-svg"), ("altair_plot", "canvas"), ("bokeh_plot", ".bk-Figure")],
)
def test_a_plot_is_drawn_by_its_own_library(open_view, tool, drawn):
    page = open_view(tool, ERAS[1])
    view = page.frame_locator("iframe")
    live = view.get_by_role("button", name="Zoom and hover")
    expect(view.locator(f"#plot img, {drawn}").first).to_be_visible(timeout=2 * SOON)
    if live.is_visible():
        live.click()
    expect(view.locator(drawn).first).to_be_visible(timeout=2 * SOON)
    page.screenshot(path=SCREENSHOTS / f"view_{tool}.png")


def test_a_person_finds_the_wettest_days_as_in_the_guides_picture(open_view):
    page = open_view("weather_days", ERAS[1])
    view = page.frame_locator("iframe")
    expect(view.locator("#place")).to_have_text("1 to 50 of 1,461", timeout=SOON)
    sort = view.get_by_role("columnheader").filter(has_text="rain_mm").get_by_title("Sort")
    sort.click(timeout=SOON)
    expect(view.locator("th[aria-sort=ascending]")).to_have_count(1, timeout=SOON)
    sort.click()
    expect(view.locator("th[aria-sort=descending]")).to_have_count(1, timeout=SOON)
    for row in (0, 2):
        view.locator("tbody tr").nth(row).click()
    expect(view.get_by_role("button", name="Send 2 to the assistant")).to_be_enabled()
    rain = [float(row[1]) for row in rows_of(view)]
    assert rain == sorted(rain, reverse=True)
    page.locator("iframe").screenshot(path=SCREENSHOTS / "view_guide_table.png")


def test_a_person_sees_a_plot_of_plotly_as_in_the_guides_picture(open_view):
    page = open_view("temperatures", ERAS[1])
    view = page.frame_locator("iframe")
    live = view.get_by_role("button", name="Zoom and hover")
    expect(view.locator("#plot img, .main-svg").first).to_be_visible(timeout=2 * SOON)
    if live.is_visible():
        live.click()
    expect(view.locator(".legendtext").first).to_be_visible(timeout=2 * SOON)
    page.locator("iframe").screenshot(path=SCREENSHOTS / "view_guide_plot.png")


def test_html_is_shown_without_running_its_scripts_or_loading_anything(open_view):
    page = open_view("page", ERAS[1])
    inner = page.frame_locator("iframe").frame_locator("iframe")
    expect(inner.get_by_role("heading", name="Hello")).to_be_visible(timeout=SOON)


def test_the_table_can_be_used_by_keyboard(open_view):
    page = open_view("rain", ERAS[1])
    view = page.frame_locator("iframe")
    view.locator("tbody tr").first.focus(timeout=SOON)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(view.locator("tbody tr").nth(1)).to_have_attribute("aria-selected", "true")
    view.locator("th .sort").first.focus()
    page.keyboard.press("Enter")
    expect(view.locator("th[aria-sort=ascending]")).to_have_count(1, timeout=SOON)


def test_the_focus_stays_where_it_was_and_a_screen_reader_hears_what_has_changed(open_view):
    page = open_view("rain", ERAS[1])
    view = page.frame_locator("iframe")
    news = view.locator("#news")
    expect(news).to_have_text("Page 1 of 100.", timeout=SOON)
    sort = view.get_by_role("columnheader").filter(has_text="rain").get_by_title("Sort")
    for order in ("Sorted by rain, ascending.", "Sorted by rain, descending."):
        sort.focus()
        page.keyboard.press("Enter")
        expect(news).to_have_text(f"{order} Page 1 of 100.", timeout=SOON)
        expect(sort).to_be_focused()
    view.get_by_role("button", name="Next page").focus()
    page.keyboard.press("Enter")
    expect(news).to_have_text("Page 2 of 100.", timeout=SOON)
    expect(view.get_by_role("button", name="Next page")).to_be_focused()
    view.get_by_role("button", name="Last page").focus()
    page.keyboard.press("Enter")
    expect(news).to_have_text("Page 100 of 100.", timeout=SOON)
    expect(view.get_by_role("button", name="Previous page")).to_be_focused()
    filters = view.get_by_role("button", name="Filter and summary of city")
    filters.focus()
    page.keyboard.press("Enter")
    view.get_by_label("Value").fill("seat")
    page.keyboard.press("Enter")
    expect(news).to_contain_text("rows match. Page 1 of", timeout=SOON)
    expect(filters).to_be_focused()
    view.locator(".chips button").focus()
    page.keyboard.press("Enter")
    expect(news).to_contain_text("5,000 rows match.", timeout=SOON)
    expect(view.get_by_label("Search all columns")).to_be_focused()
    view.get_by_role("button", name="Filter and summary of day").focus()
    page.keyboard.press("Enter")
    view.get_by_role("button", name="Hide column").click()
    expect(view.get_by_role("columnheader")).to_have_count(3, timeout=SOON)
    expect(view.get_by_role("button", name="Filter and summary of rain")).to_be_focused()


def test_a_table_that_is_shown_in_part_has_a_view_where_the_host_drops_its_meta(open_view):
    page = open_view("rain", ERAS[1], keep_meta=False)
    view = page.frame_locator("iframe")
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)
    expect(view.get_by_role("button", name="CSV")).to_be_visible()


def test_a_person_chooses_among_500_columns_and_is_told_how_many_fit(open_view, kernel):
    kernel.ok(WIDE)
    page = open_view("wide", ERAS[1])
    view = page.frame_locator("iframe")
    expect(view.get_by_role("columnheader")).to_have_count(60, timeout=SOON)
    view.get_by_role("button", name="Columns (60 of 500)").click()
    view.get_by_label("Find a column").fill("column 49")
    view.get_by_label("column 499").check()
    expect(view.locator("dialog [role=status]")).to_have_text("61 chosen: at most 60 fit")
    expect(view.get_by_role("button", name="Show these")).to_be_disabled()
    page.wait_for_function("() => parseFloat(document.querySelector('iframe').style.height) > 400")
    page.screenshot(path=SCREENSHOTS / "view_columns.png")
    view.get_by_role("button", name="None").click()
    view.get_by_label("column 498").check()
    view.get_by_role("button", name="Show these").click()
    expect(view.get_by_role("columnheader")).to_have_text(["column 498int64⋮"], timeout=SOON)


@pytest.mark.parametrize(("width", "theme"), [(320, "dark"), (720, "light"), (1600, "dark")])
def test_a_view_is_readable_at_every_width_and_in_both_themes(open_view, theme, width):
    page = open_view("rain", ERAS[1], theme=theme, width=width)
    view = page.frame_locator("iframe")
    expect(view.locator("#place")).to_have_text("1 to 50 of 5,000", timeout=SOON)
    page.wait_for_function("() => parseFloat(document.querySelector('iframe').style.height) > 400")
    frame = page.frames[1]
    assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=SCREENSHOTS / f"view_table_{theme}_{width}.png")
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = Axe().run(frame, None, options).response["violations"]
    assert [(flaw["id"], flaw["nodes"][0]["html"]) for flaw in found] == []
    assert len(read_result_page()["text"]) < 30_000


def test_an_authors_page_gets_the_result_calls_tools_and_tells_the_model(open_view):
    page = open_view("days", ERAS[1], theme="dark")
    view = page.frame_locator("iframe")
    expect(view.get_by_role("heading")).to_have_text("Anywhere: 30", timeout=SOON)
    hostile = "<img src=x onerror=top.postMessage('ran','*')>"
    assert view.locator("li").all_inner_texts() == [hostile] * 30
    expect(view.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_function("() => parseFloat(document.querySelector('iframe').style.height) > 500")
    view.get_by_role("button").click()
    expect(view.locator("p")).to_contain_text("Unknown tool: 'no_such_tool'", timeout=SOON)
    (sent,) = page.evaluate("seen.contexts")
    assert sent["content"] == [{"type": "text", "text": "The mean is 7.5."}]
    page.evaluate("bridge.setHostContext({ theme: 'light' })")
    expect(view.locator("html")).to_have_attribute("data-theme", "light")


def test_an_authors_page_is_told_when_the_host_lets_it_call_nothing(open_view):
    page = open_view("days", ERAS[1], capabilities={})
    view = page.frame_locator("iframe")
    failed = "notebook.call('mean_rain', {city: 'x'}).catch(error => error.message)"
    expect(view.get_by_role("heading")).to_have_text("Anywhere: 30", timeout=SOON)
    assert "does not let views call tools" in page.frames[1].evaluate(failed)
