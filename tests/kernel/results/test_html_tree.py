"""HTML as a tree: its depth is bounded, and elements end where they do in browsers."""

import pytest

from mcp_notebook.kernel.results.html_tree import MAX_DEPTH, HtmlTree


@pytest.mark.parametrize(
    ("markup", "tree"),
    [
        ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
        (
            "<table><tr><td>1<th>2<tr><td>3</table>",
            "<table><tr><td>1</td><th>2</th></tr><tr><td>3</td></tr></table>",
        ),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
        ("a<br>b<br/>c</br>d", "a<br/>b<br/>cd"),
    ],
)
def test_elements_end_as_in_browsers(markup, tree):
    assert str(HtmlTree(markup)) == tree


def test_a_thousand_items_that_nothing_ends_are_items():
    assert (
        len(HtmlTree("<ul>" + "<li>a" * 5_000 + "</ul>").ul.find_all("li", recursive=False))
        == 5_000
    )


def test_what_is_too_deep_is_text_of_the_deepest_element():
    tree = HtmlTree("<div>" * 100 + "a<b>c</b><br>d" + "</div>" * 100 + "<p>e</p>")
    deepest = tree.find_all("div")[-1]
    assert len(tree.find_all("div")) == MAX_DEPTH
    assert " ".join(deepest.get_text().split()) == "a c d"
    assert deepest.b is None
    assert tree.p.parent is tree


def test_an_element_that_ends_ends_those_too_deep_within_it():
    tree = HtmlTree("<div>" * MAX_DEPTH + "<b><i>a</div><i>c</i>")
    assert tree.find_all("i")[0].get_text() == "c"


def test_gaps_are_cut():
    text = HtmlTree(f"<p>a{' ' * 5_000}b{'&#32;' * 5_000}c</p>").p.get_text()
    assert (text.split(), len(text)) == (["a", "b", "c"], 403)
