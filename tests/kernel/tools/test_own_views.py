"""Own pages of live views: files, functions and HTML cells, and sentences for those that fail."""

import functools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_notebook.errors import DefinitionError, ResourceFailed
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.own_views import MAX_PAGE, OwnViews, read_hosts
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


@pytest.fixture
def namespace():
    return {"__name__": "__main__"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "view.html").write_text("<b>file é</b>", "utf-8")
    return tmp_path


@pytest.fixture
def views(namespace, folder):
    shared = SharedFolders(folder)
    return OwnViews(namespace, folder, shared.read_bytes)


@pytest.fixture
def registry(views):
    return ToolRegistry(lambda: None, views=views)


def rain() -> str:
    """Rain."""
    return "rain"


def declare(registry, **options):
    registry.add(make_tool(rain, ToolOptions(**options)))


def page_of(registry):
    return json.loads(registry.make_page("rain"))["html"]


def refusal(registry, **options):
    with pytest.raises(DefinitionError) as refused:
        declare(registry, **options)
    assert registry.get("rain") is None
    return str(refused.value)


def failure(registry):
    with pytest.raises(ResourceFailed) as failed:
        registry.make_page("rain")
    return str(failed.value)


def run(namespace, code):
    exec(code, namespace)


# -- what a page is made from ----------------------------------------------------------------------


def test_a_file_is_read_each_time_wherever_the_kernel_is_now(registry, folder, monkeypatch):
    declare(registry, ui="view.html")
    monkeypatch.chdir("/")
    assert page_of(registry) == "<b>file é</b>"
    (folder / "view.html").write_text("\ufeff<b>new</b>", "utf-8")
    assert page_of(registry) == "<b>new</b>"


def test_a_path_object_and_a_folder_name_a_file(registry, folder):
    (folder / "pages").mkdir()
    (folder / "pages" / "a.txt").write_text("<i>a</i>")
    declare(registry, ui="pages/a.txt")
    assert page_of(registry) == "<i>a</i>"
    declare(registry, ui=folder / "view.html")
    assert page_of(registry) == "<b>file é</b>"


def test_a_cell_is_read_by_its_name_and_its_last_run_counts(registry):
    registry.views.define("map", "<b>1</b>")
    declare(registry, ui="map")
    registry.views.define("map", "<b>2</b>")
    assert page_of(registry) == "<b>2</b>"


def test_a_function_is_called_each_time_and_its_variable_is_followed(registry, namespace):
    run(namespace, "calls = []\ndef page():\n    calls.append(1)\n    return f'{len(calls)}'")
    declare(registry, ui=namespace["page"])
    assert [page_of(registry), page_of(registry)] == ["1", "2"]
    run(namespace, "def page():\n    return 'new'")
    assert page_of(registry) == "new"
    run(namespace, "page = 5")
    assert page_of(registry) == "3"


def test_a_function_that_only_copies_a_name_stays_itself(registry, namespace):
    run(namespace, "def page():\n    return 'inner'")

    @functools.wraps(namespace["page"])
    def outer():
        return "outer"

    declare(registry, ui=outer)
    assert page_of(registry) == "outer"


def test_a_function_may_return_an_object_that_shows_itself_as_html(registry):
    class Styled:
        def _repr_html_(self):
            return "<table></table>"

    declare(registry, ui=Styled)
    assert page_of(registry) == "<table></table>"


def test_views_of_a_reloaded_extension_stay(registry, views):
    registry.views.define("map", "<b>1</b>")
    declare(registry, ui="map")
    after = ToolRegistry(lambda: None, views=OwnViews())
    after.take_over(registry)
    assert json.loads(after.make_page("rain"))["html"] == "<b>1</b>"


# -- refused when it is declared -------------------------------------------------------------------


def test_a_missing_file_or_view_is_refused_with_what_was_probably_meant(registry):
    registry.views.define("map", "<b></b>")
    assert "There is no file veiw.html. Did you mean 'view.html'?" in refusal(
        registry, ui="veiw.html"
    )
    assert refusal(registry, ui="mapp") == "`rain`: there is no view 'mapp'. Did you mean 'map'?"
    assert "there is no view 'view'. Did you mean 'view.html'?" in refusal(registry, ui="view")
    assert "Run the cell that begins with `%%mcp_view chart` first" in refusal(registry, ui="chart")


def test_the_name_of_a_function_is_refused_with_how_to_pass_the_function(registry, namespace):
    run(namespace, "def page():\n    return ''")
    assert "write `@mcp_tool(ui=page)`" in refusal(registry, ui="page")


def test_a_file_outside_the_shared_folders_and_a_folder_are_refused(
    registry, folder, tmp_path_factory
):
    other = tmp_path_factory.mktemp("other") / "page.html"
    other.write_text("secret")
    assert "it is outside the folders that the notebook shares" in refusal(registry, ui=str(other))
    (folder / "pages").mkdir()
    assert "pages is a folder, not a file" in refusal(registry, ui=folder / "pages")


@pytest.mark.parametrize("ui", [5, "", 0.5, ["view.html"]])
def test_other_values_are_refused(registry, ui):
    assert "`rain`: `ui` must be True, False, an HTML file" in refusal(registry, ui=ui)


def test_a_function_that_cannot_be_called_without_arguments_is_refused(registry):
    async def later():
        return ""

    assert "called without arguments (missing a required argument: 'x')" in refusal(
        registry, ui=lambda x: x
    )
    assert "because it is async: define it with a plain `def`" in refusal(registry, ui=later)


@pytest.mark.parametrize(
    "host",
    [
        *("*", "", "a b", "example.org/path", "https://example.org/x", "ftp://example.org"),
        *("example.org; script-src *", "'self'", "data:", "a..b", "-a.org", "*.*.org", 5, None),
    ],
)
def test_hosts_that_are_more_than_a_host_are_refused(host):
    with pytest.raises(DefinitionError, match="`allow` must be a list of hosts"):
        read_hosts([host], "The view")


def test_hosts_are_a_list_of_at_most_twenty(registry):
    assert "must be a list of hosts" in refusal(registry, ui="view.html", allow="a.org")
    many = [f"h{number}.org" for number in range(21)]
    assert "has 21 hosts" in refusal(registry, ui="view.html", allow=many)
    assert "`allow` is for a page of your own" in refusal(registry, ui=True, allow=["a.org"])


def test_hosts_become_origins():
    hosts = ["Tiles.Example.org", "https://tiles.example.org/", "wss://*.a.org", "localhost:8000"]
    assert read_hosts(hosts, "The view") == (
        "https://tiles.example.org",
        "wss://*.a.org",
        "https://localhost:8000",
    )


def test_a_page_may_load_from_the_hosts_of_its_tool_and_of_its_cell(registry):
    registry.views.define("map", "<b></b>", ["a.org"])
    declare(registry, ui="map", allow=["b.org", "a.org"])
    hosts = ("https://a.org", "https://b.org")
    assert registry.list_hosts(registry.get("rain")) == hosts
    assert json.loads(registry.make_page("rain"))["hosts"] == list(hosts)


@pytest.mark.parametrize(
    ("name", "html", "said"),
    [
        ("my map", "<b></b>", "cannot be a view's name"),
        ("map.html", "<b></b>", "cannot be a view's name"),
        ("map", " \n", "is empty: write its HTML below the line"),
        ("map", "x" * (MAX_PAGE + 1), "at most 8.39 MB are sent"),
    ],
)
def test_a_cell_with_a_wrong_name_or_without_a_page_is_refused(views, name, html, said):
    with pytest.raises(DefinitionError, match=said):
        views.define(name, html)
    assert views.views == {}


# -- failed when it is opened ----------------------------------------------------------------------


def test_a_file_that_is_gone_or_unreadable_is_explained(registry, folder):
    declare(registry, ui="view.html")
    (folder / "view.html").write_bytes(b"\xff\xfe")
    assert "the file view.html is not UTF-8 text. Save it as UTF-8." in failure(registry)
    (folder / "view.html").write_text("x" * (MAX_PAGE + 1))
    assert "it is too large: its page has 8.39 MB" in failure(registry)
    (folder / "view.html").unlink()
    assert failure(registry) == (
        "The view of `rain` cannot be shown: There is no file view.html. Put the file there, or "
        "declare the tool with another `ui`."
    )


def test_a_function_that_fails_is_explained(registry, namespace):
    run(namespace, "def page():\n    return 1 / 0")
    declare(registry, ui=namespace["page"])
    assert failure(registry) == (
        "The view of `rain` cannot be shown: its function `page` failed with ZeroDivisionError: "
        "division by zero. Correct it in the notebook, and open the view again."
    )
    run(namespace, "def page():\n    raise KeyboardInterrupt")
    assert "failed with KeyboardInterrupt" in failure(registry)
    run(namespace, "def page():\n    return 5")
    assert "its function `page` returned a value of type int" in failure(registry)


def test_a_tool_without_a_page_of_its_own_has_none(registry):
    declare(registry)
    assert "The tool `rain` has no page of its own" in failure(registry)
    registry.remove("rain")
    assert "The tool `rain` has no page of its own" in failure(registry)


def test_lone_surrogates_do_not_break_a_page(registry):
    declare(registry, ui=lambda: "a\ud800b")
    assert page_of(registry) == "a?b"


def test_a_function_that_does_not_return_is_not_run_again_meanwhile():
    began, may_end = threading.Event(), threading.Event()

    def page():
        began.set()
        may_end.wait()
        return "<b>1</b>"

    views = OwnViews()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(views.make_page, page, (), "rain")
        began.wait()
        with pytest.raises(ResourceFailed, match="still runs for another client"):
            views.make_page(page, (), "rain")
        may_end.set()
        assert "<b>1</b>" in first.result()
    assert "<b>1</b>" in views.make_page(page, (), "rain")
