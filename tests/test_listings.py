"""What assistants and registries list the server by is what the script makes of pyproject.toml.

tests/assistants/test_listings.py asks the assistants themselves.
"""

import base64
import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

import make_listings
import pytest

from mcp_notebook.clients.known_clients import CLIENTS

PROJECT = make_listings.read_project()
FILES = make_listings.make_files(PROJECT)
ADDRESSED = PROJECT | {"urls": {"Repository": "https://github.com/ada/notebooks"}}
NAMED = "<!-- mcp-name: io.github.ada/mcp-notebook -->"


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_what_the_script_makes(name):
    text = (make_listings.HERE / name).read_text(encoding="utf-8")
    assert text == FILES[name], "run packaging/make_listings.py"


def test_there_is_no_other_file():
    made = {".json", ".yaml"}
    files = [path for path in make_listings.HERE.rglob("*") if path.suffix in made]
    assert {file.relative_to(make_listings.HERE).as_posix() for file in files} == {*FILES}


def test_the_page_has_the_links_that_the_script_makes():
    text = make_listings.PAGE.read_text(encoding="utf-8")
    assert make_listings.make_links() in text
    assert make_listings.put_links(text) == text


def test_the_links_carry_the_entry_that_the_clients_settings_have():
    cursor, code = re.findall(r"\]\((\S+)\)", make_listings.make_links())
    query = parse_qs(urlsplit(cursor).query)
    assert query["name"] == [make_listings.SERVER]
    assert json.loads(base64.b64decode(query["config"][0])) == make_listings.LAUNCH
    entry = json.loads(unquote(code.partition("?")[2]))
    assert entry == {"name": make_listings.SERVER, **make_listings.LAUNCH}
    assert {"cursor", "vscode"} <= CLIENTS.keys()


def test_the_entry_for_the_registry_keeps_its_rules():
    entry = make_listings.make_server(ADDRESSED, NAMED)
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert len(entry["description"]) <= 100
    (package,) = entry["packages"]
    assert package["version"] == entry["version"] == PROJECT["version"]
    assert entry["repository"]["url"] == ADDRESSED["urls"]["Repository"]


def test_the_bundle_for_claude_desktop_starts_this_version_as_install_does():
    files = make_listings.make_bundle(PROJECT)
    manifest = json.loads(files["manifest.json"])
    words = manifest["server"]["mcp_config"]["args"]
    assert words[-2:] == ["stdio", "--meta-tools"]
    assert not CLIENTS["claude-desktop"].sees_new_tools
    (block,) = re.findall(r'dependencies = \["(.+)"\]', files["server.py"])
    assert block == f"mcp-notebook=={PROJECT['version']}"


def test_there_is_no_entry_for_the_registry_without_an_address_of_the_repository():
    with pytest.raises(SystemExit, match=r"set project\.urls\.Repository"):
        make_listings.make_server(PROJECT | {"urls": {}}, NAMED)


def test_the_registry_needs_the_servers_name_in_the_readme_of_the_package():
    with pytest.raises(SystemExit, match=re.escape(NAMED)):
        make_listings.make_server(ADDRESSED, "# mcp-notebook")
