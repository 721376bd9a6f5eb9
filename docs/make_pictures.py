"""Makes the pictures in ``docs/images/``: ``python docs/make_pictures.py``.

Run it after a change of the README's cells, of the card, of the table of a call's states or of the
imports between rooms, with the extra ``demo`` installed. The drawn ones need nothing else and are
compared with the code by the tests; the first page's needs Chromium, and is left as it is without.
"""

import sys
from pathlib import Path

from pictures.call_states import call_states
from pictures.first_page import THEMES, Scene, compose_page, find_browser, photograph, play_scene
from pictures.rooms import draw_rooms

DRAWINGS = {"call_states.svg": call_states, "rooms.svg": draw_rooms}
"""The pictures that are drawn from code alone."""


def make_pictures(folder: Path) -> Scene:
    """Make the pictures in a folder, and return the scene that the first page shows."""
    for name, draw in DRAWINGS.items():
        (folder / name).write_text(draw(), encoding="utf-8", newline="\n")
    scene = play_scene()
    (folder / "plot_rain.png").write_bytes(scene.picture)
    browser = find_browser()
    if browser is None:
        print("No Chromium: the pictures of the first page stay as they are.")  # noqa: T201
        return scene
    for theme in THEMES:
        picture = photograph(compose_page(scene, theme), browser)
        (folder / f"first_page_{theme}.png").write_bytes(picture)
    return scene


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images")
