"""HTML as Markdown: what a model reads of it, and that nothing can make it slow or fail."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.kernel.results.html.to_markdown import (
    MAX_DEPTH,
    MAX_MARKUP,
    HtmlTree,
    convert_html,
)

ROOM = 25_000
ODD = (
    *("<", "</", "<!", "<!--", "<![CDATA[", "<?xml ", "<a href='", '<a href="', "&#", "&amp"),
    *("<b>", "<ul><li>", "<table><tr><td>", "<td>x", "<script>", "<svg>", "<svg><text>", "<pre>"),
    *("</p>", 'src="data:', "<i>a</b>", "<tr><td>x</td></tr>", "<ol><li>x</li>", "<p hidden>"),
    *("<tbody><tr><td>x</td></tr></tbody>", "<td colspan=99999999>x</td>", "\x00", "\ud800"),
)
LONG = {
    *("<", "</", "<!", "<b>", "<ul><li>", "<table><tr><td>", "<td>x", "<pre>", "</p>", "<i>a</b>"),
    *("<ol><li>x</li>", "<p hidden>", "<tbody><tr><td>x</td></tr></tbody>"),
    "<td colspan=99999999>x</td>",
}
"""Those of which megabytes take half a second and more."""


def markdown(html):
    return convert_html(html, ROOM).text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>Rain</h2><p>in <em>mm</em></p>", "## Rain\n\nin *mm*"),
        ("a_b * c &lt;d&gt;", "a_b * c <d>"),
        ("<p>See <a href='https://x.org/a'>docs</a></p>", "See [docs](https://x.org/a)"),
        ("<a href='javascript:alert(1)'>run</a>", "run"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<pre>x = 1\n   y</pre>", "```\nx = 1\n   y\n```"),
        ("<style>p {}</style><p>a</p><script>b('<p>')</script>", "a"),
        ("<p>a<!-- b --></p>", "a"),
        ("<p>a</p><input type=hidden value=b><p hidden>c</p>", "a"),
        ("<p style='display: none'>waits for its style sheet</p>", "waits for its style sheet"),
        ("<svg><path d='M0 0'/><text x=1>2000</text></svg>", "2000"),
        ("<img src='a.png' alt='A plot'>", "[picture: A plot]"),
        ("<b><b>a</b></b>", "**a**"),
        ("no tags", "no tags"),
        ("", ""),
    ],
)
def test_html_becomes_markdown(html, text):
    assert markdown(html) == text


@pytest.mark.smoke
def test_a_table_is_a_table_with_its_cells_whole():
    html = (
        "<table><caption>Rain | mm</caption><thead><tr><th></th><th>city</th></tr></thead>"
        "<tbody><tr><th>0</th><td>Oslo | x<br>y</td></tr></tbody></table>"
    )
    assert markdown(html) == "Rain / mm\n\n| | city |\n|---|---|\n| 0 | Oslo \\| x y |"


def test_a_table_that_only_places_another_one_is_left_out():
    html = "<table><tr><td><table><tr><th>a</th></tr><tr><td>1</td></tr></table></td></tr></table>"
    assert markdown(html) == "| a |\n|---|\n| 1 |"


def test_pandas_styled_table_says_what_it_shows():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    frame = pandas.DataFrame({"city": ["Rome", "Oslo"], "rain": [0.5, 1.25]})
    styled = frame.style.highlight_max(subset=["rain"]).format(precision=1).to_html()
    assert markdown(styled).splitlines()[2:] == ["| 0 | Rome | 0.5 |", "| 1 | Oslo | 1.2 |"]


def test_a_text_that_stands_for_hidden_parts_is_all_that_is_said():
    """As scikit-learn and xarray do it: their style sheets swap the two."""
    html = "<div><pre>Pipeline(...)</pre></div><div hidden><label>Pipeline</label></div>"
    assert markdown(html) == "```\nPipeline(...)\n```"


def test_media_in_it_are_handed_out_and_take_no_room():
    data = "data:image/png;base64," + "A" * 3_000_000
    made = convert_html(f"<p>a<img alt='b' src='{data}'></p><p>c</p>", ROOM)
    assert made.data_uris == (data,)
    assert made.text == "a\n\nc"
    assert made.converted_chars == made.markup_chars < 100


@pytest.mark.parametrize(
    "html",
    [
        "<!-- <script> --><p>a</p>",
        "<script>b = '<svg>'</script><p>a</p>",
        "<svg><image src='data:image/png;base64,AA'/></svg><p>a</p>",
    ],
)
def test_a_step_before_the_next_one_finds_what_is_not_the_documents(html):
    content = convert_html(html, ROOM)
    assert (content.text, content.data_uris) == ("a", ())


def test_data_uris_are_extracted_before_long_attributes_are_emptied():
    uri = "data:image/png;base64," + "A" * 3_000
    assert convert_html(f"<img src='{uri}'>", ROOM).data_uris == (uri,)


def test_scripts_of_megabytes_take_no_room():
    made = convert_html("<script>" + "if (a < b) x();" * 300_000 + "</script><p>a</p>", ROOM)
    assert (made.text, made.converted_chars) == ("a", made.markup_chars)


@pytest.mark.slow
def test_of_what_is_left_the_beginning_is_read_and_the_rest_counted():
    made = convert_html("<p>word <b>bold</b></p>" * 200_000, ROOM)
    assert made.text.startswith("word **bold**\n\nword")
    assert made.converted_chars < MAX_MARKUP < made.markup_chars == 4_600_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", [pytest.param(odd, marks=pytest.mark.slow if odd in LONG else ()) for odd in ODD]
)
def test_megabytes_of_odd_markup_are_read_in_bounded_room(odd):
    made = convert_html(odd * (2_000_000 // len(odd)), ROOM)
    assert len(made.text) <= 2 * MAX_MARKUP


@given(st.lists(st.sampled_from([*ODD, "<p>", "</b>", "text", '"', ">", "=", "\n"]) | st.text()))
def test_whatever_it_is_it_has_a_text(parts):
    assert isinstance(markdown("".join(parts)), str)


def test_its_libraries_are_not_loaded_before_there_is_html():
    code = (
        "import sys, mcp_notebook.kernel.results.converter;"
        " print({'bs4', 'markdownify'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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
