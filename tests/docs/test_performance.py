"""The page about performance shows the measurements that are stored, all of them."""

import make_performance
import pytest
from comparison import growth
from documents import page

GROWN = growth.read(make_performance.GROWTH)


def test_the_page_has_the_tables_and_pictures_of_what_is_stored():
    text = page("operate/performance.md").text
    assert text == make_performance.fill_in(text), "run `python docs/make_performance.py`"


@pytest.mark.parametrize("key", GROWN)
def test_a_plot_shows_what_is_stored(key):
    plot = (make_performance.PLOTS / f"{key}.svg").read_text(encoding="utf-8")
    assert make_performance.digest(GROWN[key]) in plot, "run `python docs/make_performance.py`"
