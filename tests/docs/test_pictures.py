"""The pictures of the documents show what the code has, and can be made again."""

from xml.etree import ElementTree as ET

import pytest
from documents import DOCS, README, ROOT, Document, page
from make_pictures import make_pictures
from pictures import call_states, plot_rain, rooms

from mcp_notebook.kernel.calls.call import CallState

IMAGES = DOCS / "images"
FILMS = ("light.webp", "light.png", "dark.webp", "dark.png")
SVG = "{http://www.w3.org/2000/svg}"


def _committed(name):
    return (IMAGES / name).read_text(encoding="utf-8")


# -- the states of a call --------------------------------------------------------------------------


def test_the_committed_picture_is_the_one_of_the_table():
    assert call_states.call_states() == _committed("call_states.svg")


def test_the_picture_names_every_state():
    texts = [text.text for text in ET.fromstring(_committed("call_states.svg")).iter(f"{SVG}text")]
    assert sorted(texts) == sorted(CallState)


def test_the_contributors_guide_shows_the_picture():
    assert "docs/images/call_states.svg" in Document(ROOT / "CONTRIBUTING.md").links


# -- the rooms -------------------------------------------------------------------------------------


def test_the_committed_picture_of_the_rooms_is_the_one_of_the_code():
    assert rooms.draw_rooms() == _committed("rooms.svg"), "run `python docs/make_pictures.py`"


def test_it_names_every_room_and_file_beside_the_rooms():
    names = {
        name
        for text in ET.fromstring(_committed("rooms.svg")).iter(f"{SVG}text")
        if "name" in text.get("class", "").split()
        for name in text.text.rstrip(",").split(", ")
    }
    package = ROOT / "mcp_notebook"
    found = {
        f"{path.name}/" if path.is_dir() else path.name
        for folder in (package, package / "kernel", package / "bridge")
        for path in folder.iterdir()
        if path.is_dir() or path.suffix == ".py"
    }
    # Both processes have a frame; the others only lead to what is drawn, or give it names.
    left_out = {"kernel/", "bridge/", "__pycache__/", "__init__.py", "__main__.py", "_version.py"}
    left_out.add("asgi.py")
    assert names == found - left_out


def test_imports_are_read_in_every_form_and_place(tmp_path):
    (tmp_path / "high").mkdir()
    for name, text in {
        "high/one.py": "import package.low.module",
        "high/two.py": "def f():\n    from package import middle",
        "middle.py": "from package.low import thing\nimport low",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "low.py").touch()
    found = rooms.read_imports(
        [
            rooms.Room("package.high", tmp_path / "high"),
            rooms.Room("package.middle", tmp_path / "middle.py"),
            rooms.Room("package.low", tmp_path / "low.py"),
        ]
    )
    assert found == {
        "package.high": {"package.low", "package.middle"},
        "package.middle": {"package.low"},
    }


def test_the_picture_of_the_rooms_is_shown():
    """Also on the site, whose page includes the file."""
    links = Document(ROOT / "CONTRIBUTING.md").links
    assert any(link.endswith("images/rooms.svg") for link in links)


# -- the first page --------------------------------------------------------------------------------


def test_the_film_begins_with_the_readmes_cells():
    """tests/browser/test_pictures.py makes it."""
    assert plot_rain.read_cells() == [cell.strip() for cell in README.code("python")]


@pytest.mark.parametrize("document", [README, page("index.md")], ids=lambda document: document.name)
@pytest.mark.parametrize("name", FILMS)
def test_the_first_page_has_a_film_and_a_still_for_light_and_dark_pages(document, name):
    assert f"images/first_page_{name}" in document.text
    assert (IMAGES / f"first_page_{name}").exists()


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_pictures_are_made_from_the_readmes_own_cells_and_the_table_of_states(tmp_path):
    make_pictures(folder := tmp_path)
    made = (folder / "plot_rain.png").read_bytes()
    committed = (IMAGES / "plot_rain.png").read_bytes()
    # Fonts and renderers differ between versions; the picture's header says kind and size.
    assert made[:16] == committed[:16]
    for path in folder.glob("*.svg"):
        assert path.read_text(encoding="utf-8") == _committed(path.name)
    assert {path.name for path in folder.glob("*.svg")} == {
        path.name for path in IMAGES.glob("*.svg")
    }
