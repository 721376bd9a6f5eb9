"""Makes the pictures in ``docs/images/``: ``python docs/make_pictures.py``.

Run it after a change of the README's cells, of the card, of the panel, of proposals, of live
views, of the table of a call's states or of the imports between rooms, with the extra ``demo``
installed. The drawn ones need nothing else and are compared with the code by the tests. Those of
JupyterLab need Chromium and the extra ``browser``; without, they are left as they are.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from pictures.call_states import call_states
from pictures.plot_rain import ROOT, plot_rain
from pictures.rooms import draw_rooms

DRAWINGS = {"call_states.svg": call_states, "rooms.svg": draw_rooms}
"""The pictures that are drawn from code alone."""


def make_pictures(folder: Path) -> None:
    """Make the pictures in a folder, but for those of a browser."""
    for name, draw in DRAWINGS.items():
        (folder / name).write_text(draw(), encoding="utf-8", newline="\n")
    (folder / "plot_rain.png").write_bytes(plot_rain())


def photograph_jupyterlab(folder: Path) -> None:
    """Make the pictures of JupyterLab: the first page's, for each theme, and the guides'."""
    sys.path += [str(ROOT / "tests" / place) for place in (".", "browser", "e2e")]
    from lab_page import THEMES  # noqa: PLC0415 - of the extra `browser`
    from lab_server import lab_server  # noqa: PLC0415
    from pictures.first_page import film_calls  # noqa: PLC0415
    from pictures.panels import photograph_proposal, photograph_side_panel  # noqa: PLC0415
    from web_browser import launched_chromium  # noqa: PLC0415

    with (
        TemporaryDirectory(prefix="mcpnb-", ignore_cleanup_errors=True) as home,
        lab_server(Path(home)) as server,
        launched_chromium() as chromium,
    ):
        for theme in THEMES:
            film = film_calls(server, chromium, theme)
            (folder / f"first_page_{theme}.webp").write_bytes(film.write_animation())
            (folder / f"first_page_{theme}.png").write_bytes(film.write_last())
        beside, alone = photograph_side_panel(server, chromium)
        (folder / "side_panel.png").write_bytes(beside)
        (folder / "side_panel_widths.png").write_bytes(alone)
        (folder / "proposal.png").write_bytes(photograph_proposal(server, chromium))


def photograph_editor(folder: Path) -> None:
    """Make the pictures of VS Code, which npm brings in."""
    sys.path.append(str(ROOT / "tests" / "vscode"))
    from npm_packages import bring_in  # noqa: PLC0415 - of the extra `browser`
    from pictures.vs_code import photograph_vs_code  # noqa: PLC0415
    from vs_code import CodeServer  # noqa: PLC0415
    from web_browser import launched_chromium  # noqa: PLC0415

    modules = bring_in(ROOT / "tests" / "vscode")
    with TemporaryDirectory(prefix="mcpnb-", ignore_cleanup_errors=True) as home:
        server = CodeServer(modules, Path(home))
        with server.running() as address, launched_chromium() as chromium:
            photograph_vs_code(folder, server, address, chromium)


if __name__ == "__main__":
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    make_pictures(images)
    if find_spec("playwright"):
        photograph_jupyterlab(images)
        from pictures.views import photograph_views  # of the extra `browser`

        photograph_views(images)
        photograph_editor(images)
    else:
        print("No extra `browser`: the pictures of JupyterLab stay as they are.")  # noqa: T201
