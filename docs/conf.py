"""The documentation site: Sphinx with MyST, on the theme of NumPy and pandas.

``sphinx-build -W --keep-going docs docs/_build/html`` builds it without a network. The pages
are Markdown that reads well on GitHub, too. Notebooks are copied from ``notebooks/`` and shown with
the outputs that are stored in them; nothing is executed here.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

from mcp_notebook import __version__

HERE = Path(__file__).parent

project = "mcp-notebook"
author = "the mcp-notebook developers"
release = __version__
myst_url_schemes = ["http", "https", "mailto", "cursor", "vscode"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"
# Warnings of a cell are part of a tutorial only where its text says so; none of ours has any.
nb_output_stderr = "remove"
nb_ipywidgets_js = {}
# Cells below magics such as `%%mcp_prompt` hold Markdown, which a Python lexer cannot read.
suppress_warnings = ["misc.highlighting_failure"]

default_role = "code"  # a name between single backticks in a docstring
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature says them
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "mcp-notebook"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "search_scorer.js")
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}
html_sidebars = {"index": []}
pygments_style = "default"


def _copy_notebooks() -> None:
    """Copy the demo notebooks to where Sphinx looks for pages; adapt their links to the site."""
    folder = HERE / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        text = path.read_text(encoding="utf-8").replace("](../docs/", "](../")
        copy = folder / path.name
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8", newline="\n")
    for copy in folder.glob("*.ipynb"):
        if not (HERE.parent / "notebooks" / copy.name).exists():
            copy.unlink()


def _adapt_links(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Let links that lead out of ``docs/`` on GitHub lead to the pages of the site."""
    source[0] = re.sub(r"\]\(\.\./((?:\.\./)*notebooks/)", r"](\1", source[0])
    source[0] = source[0].replace("](../../CONTRIBUTING.md", "](index.md")


def setup(app: Sphinx) -> None:
    """Add what is ours to the build."""
    shutil.rmtree(HERE / "notebooks" / ".ipynb_checkpoints", ignore_errors=True)
    _copy_notebooks()
    app.connect("source-read", _adapt_links)
