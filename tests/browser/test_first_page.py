"""The picture of the README and the site's first page can be made again, and is up to date."""

import pytest
from documents import DOCS
from pictures.first_page import photograph_notebook

pytestmark = pytest.mark.browser


def test_the_committed_pictures_are_as_wide_as_those_that_are_made(server, chromium):
    for theme, picture in photograph_notebook(server, chromium).items():
        committed = (DOCS / "images" / f"first_page_{theme}.png").read_bytes()
        # A PNG's kind and width; fonts differ between machines, so the height may.
        assert picture[:20] == committed[:20]
