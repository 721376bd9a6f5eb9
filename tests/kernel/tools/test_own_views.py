"""Own pages of live views: files and HTML cells, and sentences for those that fail."""

import json

import pytest

from mcp_notebook.errors import DefinitionError, ResourceFailed
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.own_views import MAX_PAGE, OwnViews, read_hosts
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "view.html").write_text("<b>file é</b>", "utf-8")
    return tmp_path


@pytest.fixture
def views(folder):
    shared = SharedFolders(folder)
    return OwnViews(folder, shared.read_bytes)


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


# -- refused when it is declared -------------------------------------------------------------------


def test_a_missing_file_or_view_is_refused_with_what_was_probably_meant(registry):
    registry.views.define("map", "<b></b>")
    assert "There is no file veiw.html. Did you mean 'view.html'?" in refusal(
        registry, ui="veiw.html"
    )
    assert refusal(registry, ui="mapp") == "`rain`: there is no view 'mapp'. Did you mean 'map'?"
    assert "there is no view 'view'. Did you mean 'view.html'?" in refusal(registry, ui="view")
    assert "Run the cell that begins with `%%mcp_view chart` first" in refusal(registry, ui="chart")


def test_a_file_outside_the_shared_folders_and_a_folder_are_refused(
    registry, folder, tmp_path_factory
):
    other = tmp_path_factory.mktemp("other") / "page.html"
    other.write_text("secret")
    assert "it is outside the folders that the notebook shares" in refusal(registry, ui=str(other))
    (folder / "pages").mkdir()
    assert "pages is a folder, not a file" in refusal(registry, ui=folder / "pages")


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
