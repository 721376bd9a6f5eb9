"""Widgets: what is in them, not their names."""

import io
import warnings

import pytest

from mcp_notebook.content import Image

widgets = pytest.importorskip("ipywidgets")
pil = pytest.importorskip("PIL.Image")


def test_html_and_labels_are_their_text_however_long(to_text):
    assert to_text(widgets.HTML("<p>" + "word " * 100 + "<b>end</b></p>")).endswith("**end**")
    assert to_text(widgets.Label("hello")) == "hello"


def test_a_box_is_what_is_in_it(to_text):
    inner = widgets.HBox([widgets.IntSlider(3), widgets.HTML("<b>x</b>" + "y" * 300)])
    text = to_text(widgets.VBox([widgets.Label("first"), inner]))
    assert text.split() == ["first", "IntSlider(value=3)", "**x**" + "y" * 300]


def test_tabs_have_their_titles(to_text):
    tab = widgets.Tab([widgets.Label("a"), widgets.Label("b")], titles=("one", "two"))
    assert to_text(tab).split() == ["one:", "a", "two:", "b"]


def test_a_picture_within_a_box_is_a_picture(convert):
    buffer = io.BytesIO()
    pil.new("RGB", (5, 5)).save(buffer, "PNG")
    image = widgets.Image(value=buffer.getvalue())
    text, block = convert(widgets.VBox([widgets.Label("picture"), image]))
    assert (text.text, type(block)) == ("picture", Image)


def test_outputs_of_an_output_widget_are_shown(to_text):
    output = widgets.Output()
    output.outputs = (
        {"output_type": "stream", "name": "stdout", "text": "printed\n"},
        {"output_type": "display_data", "data": {"text/markdown": "**bold**"}, "metadata": {}},
        {
            "output_type": "error",
            "ename": "E",
            "evalue": "e",
            "traceback": ["\x1b[31mfailed\x1b[0m"],
        },
    )
    text = to_text(output)
    assert [part in text for part in ("printed", "**bold**", "failed")] == [True] * 3
    assert "\x1b" not in text


def test_a_box_that_contains_itself_or_very_much_ends(to_text):
    box = widgets.VBox()
    box.children = (box,)
    assert to_text(box) == "[1 more widgets are left out: a result shows 200 at most.]"
    many = widgets.VBox([widgets.Label("x")] * 300)
    assert to_text(many).endswith("[101 more widgets are left out: a result shows 200 at most.]")


def test_a_widget_that_shows_itself_is_shown_by_that(to_text):
    class Shown(widgets.DOMWidget):
        def _repr_mimebundle_(self, **_):
            return {"text/markdown": "**shown**", "text/plain": "plain"}

    assert to_text(Shown()) == "**shown**"


# -- panel -----------------------------------------------------------------------------------------


@pytest.fixture
def panel():
    # It warns of its own names, and uses what pandas warns of.
    with warnings.catch_warnings(action="ignore"):
        yield pytest.importorskip("panel")


def test_a_layout_of_panel_is_what_is_in_it(to_text, panel, pandas):
    frame = pandas.DataFrame({"city": ["Rome"], "mm": [3]})
    row = panel.Row(panel.pane.HTML("<b>bold</b>"), panel.widgets.IntSlider(name="year", value=3))
    text = to_text(panel.Column("# Rain", row, frame, panel.Spacer()))
    assert text.split("\n\n")[1:2] == ["year: 3"]
    assert text.startswith("# Rain\n**bold**\n\n")
    assert text.endswith("city,mm\nRome,3")
    tabs = panel.Tabs(("one", "first"), ("two", "second"))
    assert to_text(tabs).split() == ["one:", "first", "two:", "second"]
    assert to_text(panel.Card("text", title="Sums")).split() == ["Sums:", "text"]
    grid = panel.GridSpec()
    grid[0, 0] = "cell"
    assert to_text(grid) == "cell"
    page = panel.template.FastListTemplate(title="Report", main=["hello"], sidebar=["menu"])
    assert to_text(page).split() == ["Report:", "menu", "hello"]
    assert to_text(panel.interact(lambda x: x * 2, x=3)) == "x: 3\n6"


def test_panes_and_widgets_of_panel_are_what_they_hold(to_text, convert, panel, pandas, plt):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    [picture] = convert(panel.pane.Matplotlib(figure))
    assert type(picture) is Image
    frame = pandas.DataFrame({"mm": [3]})
    for value in (panel.widgets.Tabulator(frame), panel.pane.DataFrame(frame)):
        assert to_text(value).endswith("mm\n3")
    assert to_text(panel.indicators.Number(name="n", value=3)) == "n: 3"
    assert to_text(panel.pane.Str("abc")) == "abc"


def test_a_page_of_panel_has_an_end(to_text, panel):
    text = to_text(panel.Column(*(panel.pane.Str(f"text {number}") for number in range(300))))
    assert text.endswith("text 198\n\n[101 more widgets are left out: a result shows 200 at most.]")
    deep = panel.Row("end")
    for _ in range(30):
        deep = panel.Row(deep)
    assert "1 more widgets are left out" in to_text(deep)
    assert to_text(panel.widgets.IntSlider(value=3)) == "IntSlider: 3"
