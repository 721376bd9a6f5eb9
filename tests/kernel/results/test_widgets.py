"""Widgets: what is in them, not their names."""

import io

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
    assert to_text(box) == "[1 more widgets are left out.]"
    many = widgets.VBox([widgets.Label("x")] * 300)
    assert to_text(many).endswith("[101 more widgets are left out.]")


def test_a_widget_that_shows_itself_is_shown_by_that(to_text):
    class Shown(widgets.DOMWidget):
        def _repr_mimebundle_(self, **_):
            return {"text/markdown": "**shown**", "text/plain": "plain"}

    assert to_text(Shown()) == "**shown**"
