"""Displays that only prepare a notebook's page, and those that show something."""

import json

import pytest
from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from mcp_notebook.kernel.results.library_loaders import is_library_loader


@pytest.fixture
def displays(monkeypatch):
    """Collect what is displayed."""
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    publisher = CapturingDisplayPublisher(parent=shell)
    monkeypatch.setattr(shell, "display_pub", publisher)
    monkeypatch.setattr(shell, "displayhook", CapturingDisplayHook(shell, publisher.outputs))
    yield publisher.outputs
    InteractiveShell.clear_instance()


@pytest.mark.slow
@pytest.mark.needs("bokeh")
def test_bokeh_loads_itself_and_then_shows_a_plot(displays):
    pytest.importorskip("bokeh")
    from bokeh.io import output_notebook, show  # noqa: PLC0415
    from bokeh.plotting import figure  # noqa: PLC0415

    output_notebook()
    assert len(displays) > 1
    assert all(is_library_loader(display["data"]) for display in displays)
    displays.clear()
    plot = figure(width=300, height=300)
    plot.line([1, 2], [3, 4])
    show(plot)
    place, script = displays
    assert is_library_loader(place["data"])
    assert not is_library_loader(script["data"])


@pytest.mark.needs("plotly")
@pytest.mark.parametrize("connected", [True, False])
def test_plotly_loads_itself_and_then_shows_a_plot(displays, connected):
    pytest.importorskip("plotly")
    from plotly import graph_objects, offline  # noqa: PLC0415

    offline.init_notebook_mode(connected=connected)
    assert all(is_library_loader(display["data"]) for display in displays)
    figure = graph_objects.Figure(graph_objects.Scatter(y=[1, 2]))
    for page in (True, False):
        html = figure.to_html(include_plotlyjs=not connected, full_html=page)
        assert not is_library_loader({"text/html": html})


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": "<p>Loading BokehJS ...</p>"},
        {"text/html": '<div id="a">text</div>'},
        {"text/html": ["<b>", "lines</b>"]},
        {"text/plain": "x"},
        {"application/vnd.bokehjs_exec.v0+json": "", "application/javascript": "plot()"},
        {},
    ],
)
def test_what_shows_something_loads_nothing(data):
    assert not is_library_loader(data)


@pytest.mark.parametrize(
    "data",
    [
        {"application/vnd.holoviews_load.v0+json": "(function(root) {}"},
        {"text/html": '<script type="esms-options">{"shimMode": true}</script><style></style>'},
        {"text/html": '\n<div class="logo-block">\n<a href="https://holoviews.org" title="">'},
    ],
)
def test_what_holoviews_displays_to_load_itself_is_known(data):
    assert is_library_loader(data)


@pytest.mark.needs("bokeh")
def test_the_page_by_which_panel_connects_is_told_from_one_that_shows_something():
    embed, models = pytest.importorskip("bokeh.embed"), pytest.importorskip("bokeh.models")

    documents = json.dumps({"1": embed.json_item(models.Div(text="hello"))["doc"]})
    page = f"<script>var docs_json = {documents};</script>"
    assert not is_library_loader({"text/html": page})
    connection = page.replace('"Div"', '"panel.models.comm_manager.CommManager"')
    assert is_library_loader({"text/html": connection})


def test_the_library_of_lets_plot_is_told_from_its_plots():
    library = '<div id="a"></div><script type="text/javascript" data-lets-plot-script="library">'
    plot = '<script type="text/javascript" data-lets-plot-script="plot">var plotSpec={};</script>'
    assert is_library_loader({"text/html": library})
    assert not is_library_loader({"text/html": plot})
    assert not is_library_loader({"text/html": library + plot})
