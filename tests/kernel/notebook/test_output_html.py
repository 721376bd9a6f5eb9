"""Messages as HTML."""

from mcp_notebook.kernel.notebook.output_html import render_code


def test_text_between_backquotes_is_code_and_nothing_is_markup():
    html = render_code("Run `%mcp call a <b>`, or `c`: 1 < 2 & `")
    assert html == ("Run <code>%mcp call a &lt;b&gt;</code>, or <code>c</code>: 1 &lt; 2 &amp; `")
