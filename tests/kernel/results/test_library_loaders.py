"""Displays that only prepare a notebook's page, and those that show something."""

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
