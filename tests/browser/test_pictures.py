"""The pictures of JupyterLab in README and site can be made again, and are up to date."""

from io import BytesIO

import pytest
from documents import DOCS
from lab_page import THEMES
from pictures.first_page import film_calls
from pictures.panels import photograph_proposal, photograph_side_panel
from PIL import Image

pytestmark = [pytest.mark.browser, pytest.mark.slow]
IMAGES = DOCS / "images"


@pytest.mark.parametrize("theme", THEMES)
def test_the_first_page_has_a_film_of_calls_and_its_last_picture(server, chromium, theme):
    film = film_calls(server, chromium, theme)
    # What is in its pictures differs with fonts and the machine's speed.
    assert len(film.pictures) > 5
    committed = IMAGES / f"first_page_{theme}.webp"
    with Image.open(committed) as moving, Image.open(committed.with_suffix(".png")) as still:
        assert moving.n_frames > 5
        assert moving.size == still.size == film.pictures[-1].size
    assert committed.stat().st_size < 1_500_000


def test_the_guides_have_pictures_of_the_side_panel_and_of_a_proposal(server, chromium):
    names = ("side_panel.png", "side_panel_widths.png", "proposal.png")
    pictures = *photograph_side_panel(server, chromium), photograph_proposal(server, chromium)
    for name, picture in zip(names, pictures, strict=True):
        with Image.open(BytesIO(picture)) as made, Image.open(IMAGES / name) as committed:
            assert made.width == committed.width
