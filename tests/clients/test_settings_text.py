"""A server is added to and removed from settings, and everything else stays as it is."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.clients.rendering import render_document
from mcp_notebook.clients.servers import build_launch
from mcp_notebook.clients.settings_text import (
    add_entry,
    find_entry,
    remove_entry,
)
from mcp_notebook.settings.settings import Settings

CURSOR, CODEX, JUPYTER_AI = (CLIENTS[name] for name in ("cursor", "codex", "jupyter-ai"))
WRITTEN = list(CLIENTS.values())
EACH = pytest.mark.parametrize("client", WRITTEN, ids=lambda client: client.name)


def make_entry(client, name="notebook"):
    return client.make_entry(build_launch(client, Settings()))


def add(client, text, name="notebook"):
    return add_entry(client, text, name, make_entry(client, name))


def is_within(text, longer):
    """Return whether a text is what remains of another one if parts of it are left out."""
    rest = iter(longer)
    return all(letter in rest for letter in text)


# -- made-up documents -----------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
KEYS = st.text("abcdefg", min_size=1, max_size=4)
LINE_BREAKS = st.sampled_from(["\n", "\r\n"])


@st.composite
def json_texts(draw, client=CURSOR):
    """Return an object with comments and trailing commas, in any layout."""
    section = client.section
    end = draw(LINE_BREAKS)
    space = st.lists(
        st.sampled_from([" ", "  ", "\t", end, f"// }}, x{end}", '/* " { */', f"/*{end}*/"]),
        max_size=3,
    ).map("".join)
    scalar = st.one_of(WORDS, st.integers(), st.booleans(), st.none()).map(json.dumps)

    def value(depth):
        kind = draw(st.sampled_from(["object", "list", "scalar"] if depth else ["scalar"]))
        if kind == "scalar":
            return draw(scalar)
        if kind == "list":
            return "[" + items([value(depth - 1) for _ in range(draw(st.integers(0, 2)))]) + "]"
        return an_object({draw(KEYS): value(depth - 1) for _ in range(draw(st.integers(0, 3)))})

    def an_object(members):
        return "{" + items([f"{json.dumps(k)}{draw(space)}:{v}" for k, v in members.items()]) + "}"

    def items(texts):
        comma = "," if texts and draw(st.booleans()) else ""
        inner = ",".join(draw(space) + text + draw(space) for text in texts)
        return inner + comma + draw(space)

    members = {draw(KEYS): value(2) for _ in range(draw(st.integers(0, 3)))}
    if draw(st.booleans()):
        servers = {draw(KEYS): value(1) for _ in range(draw(st.integers(0, 2)))}
        members[section] = an_object(servers)
        if client.has_list:
            named = [{"name": json.dumps(name), "x": servers[name]} for name in servers]
            members[section] = "[" + items([an_object(each) for each in named]) + "]"
    return draw(space) + an_object(members) + draw(space)


@st.composite
def toml_texts(draw):
    """Return tables with comments between them."""
    value = st.one_of(
        st.integers(-9, 9).map(str),
        WORDS.map(json.dumps),
        st.sampled_from(["[1, # one\n  2,\n]", '"""\n[mcp_servers.x]\n"""', "{ a = 1 }", "nan"]),
    ).filter(is_toml)
    blank = st.sampled_from(["", "\n", "# a comment\n", "\n  # [mcp_servers.notebook]\n\n"])
    lines = []

    def members():
        for key in draw(st.lists(KEYS, max_size=3, unique=True)):
            comment = draw(st.sampled_from(["", "  # why"]))
            lines.append(f"{key} = {draw(value)}{comment}\n{draw(blank)}")

    members()
    for name in draw(st.lists(KEYS.map(str.upper), max_size=3, unique=True)):
        title = draw(st.sampled_from([name, f"mcp_servers.{name}", f"mcp_servers.{name}.env"]))
        lines.append(f"{draw(blank)}[{title}]{draw(st.sampled_from(['', ' # x']))}\n")
        members()
    return "".join(lines)


def is_toml(text):
    try:
        tomllib.loads(f"a = {text}")
    except tomllib.TOMLDecodeError:
        return False
    return True


# -- what holds for all of them --------------------------------------------------------------------


def check(client, text):
    """Check that a server is added, found and removed, and that all else stays."""
    before = find_entry(client, text, "notebook")
    added = add(client, text)
    assert is_within("".join(text.split()), added)
    assert find_entry(client, added, "notebook") == make_entry(client)
    assert add(client, added) == added
    assert before is None
    removed = remove_entry(client, added, "notebook")
    assert find_entry(client, removed, "notebook") is None
    return removed


ONE_OF_EACH_FORM = pytest.mark.parametrize("client", [CURSOR, JUPYTER_AI], ids=lambda one: one.name)


@ONE_OF_EACH_FORM
@given(data=st.data())
def test_all_of_a_json_text_stays_with_its_comments(client, data):
    text = data.draw(json_texts(client))
    removed = check(client, text)
    assert is_within("".join(text.split()), "".join(removed.split())) or not removed


@ONE_OF_EACH_FORM
@given(data=st.data())
def test_json_that_has_servers_is_as_before_once_ours_is_removed(client, data):
    with_server = add(client, data.draw(json_texts(client)), "other")
    assert check(client, with_server) == with_server


@given(text=toml_texts())
def test_all_of_a_toml_text_stays_with_its_comments(text):
    removed = check(CODEX, text)
    assert removed == text or not text.strip()


@EACH
def test_an_empty_file_becomes_what_a_new_one_is_and_is_empty_again(client):
    added = add(client, "")
    assert added == render_document(client, make_entry(client), "notebook")
    assert remove_entry(client, added, "notebook") == ""


@EACH
def test_another_server_of_that_name_is_replaced_in_its_place(client):
    text = add(client, add(client, add(client, "", "first"), "notebook"), "last")
    changed = add_entry(client, text, "notebook", {"url": "x"})
    assert find_entry(client, changed, "notebook") == {"url": "x"}
    order = [changed.index(name) for name in ("first", "notebook", "last")]
    assert order == sorted(order)
    assert add(client, changed) == text


@EACH
@pytest.mark.parametrize("servers", ["5", "true", '"x"'])
def test_servers_of_another_type_are_named_and_left_alone(client, servers):
    section = json.dumps(client.section)
    text = f"{{{section}: {servers}}}" if client.syntax == "json" else f"{section} = {servers}"
    with pytest.raises(ValueError, match=f"has a member {client.section!r} that is not a"):
        add(client, text)
