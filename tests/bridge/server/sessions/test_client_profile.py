"""What a client says of itself is taken and refused as the official types take and refuse it.

Except that what nobody reads is not looked at: icons, and the members of `roots`, `sampling` and
`tasks`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import InitializeRequestParams
from mcp_types.methods import CLIENT_REQUESTS
from pydantic import ValidationError

from mcp_notebook.bridge.server.sessions.client_profile import (
    CAPABILITIES,
    LOG_LEVELS,
    MAX_NAME,
    TASKS_EXTENSION,
    VIEW_EXTENSION,
    has_envelope,
    read_envelope,
    read_profile,
)
from mcp_notebook.bridge.views.pages import MIME_TYPE
from mcp_notebook.protocol.errors import (
    INVALID_PARAMS,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
)
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    LOG_LEVEL_KEY,
    PROTOCOL_VERSION_KEY,
    VERSIONS,
)
from mcp_notebook.wire import messages

NAME = {"name": "editor", "version": "1.2"}


LEAVES = st.sampled_from([None, True, False, 0, 1, "", "a"])
JSON = st.recursive(
    LEAVES,
    lambda items: st.lists(items, max_size=2) | st.dictionaries(st.sampled_from("ab"), items),
    max_leaves=4,
)
TEXT = st.text("ab", max_size=3)
OBJECT = st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2)


def objects(**members):
    """Return a strategy of objects that may have these members, and others, or of null."""
    return st.none() | st.fixed_dictionaries({}, optional={**members, "later": JSON})


OBJECTS = st.dictionaries(
    st.sampled_from([TASKS_EXTENSION, VIEW_EXTENSION, "com.example/a"]),
    OBJECT | st.just({"mimeTypes": [MIME_TYPE]}),
    max_size=2,
)
INFOS = st.fixed_dictionaries(
    {"name": TEXT, "version": TEXT},
    optional={
        **dict.fromkeys(("title", "description", "websiteUrl"), st.none() | TEXT),
        "icons": st.lists(st.fixed_dictionaries({"src": TEXT}), max_size=1),
    },
)
DECLARED = st.fixed_dictionaries(
    {},
    optional={
        "elicitation": objects(form=st.none() | OBJECT, url=st.none() | OBJECT),
        "experimental": st.none() | OBJECTS,
        "extensions": st.none() | OBJECTS,
        "roots": objects(listChanged=st.booleans()),
        "sampling": objects(tools=OBJECT, context=OBJECT),
        "tasks": objects(list=OBJECT),
        "later": JSON,
    },
)


@st.composite
def broken(draw):
    """Return a description of which one value is replaced by any other, or left out."""
    root = {"info": draw(INFOS), "capabilities": draw(DECLARED)}
    place, key = root, draw(st.sampled_from(sorted(root)))
    while isinstance(place[key], dict) and place[key] and draw(st.booleans()):
        place = place[key]
        key = draw(st.sampled_from(sorted(place)))
    if place is not root and draw(st.booleans()):
        del place[key]
    else:
        place[key] = draw(JSON)
    return root["info"], root["capabilities"]


def make_meta(version, info, capabilities):
    """Return the `_meta` of a request of 2026-07-28."""
    return {
        PROTOCOL_VERSION_KEY: version,
        CLIENT_INFO_KEY: info,
        CLIENT_CAPABILITIES_KEY: capabilities,
    }


def read_officially(version, info, capabilities):
    """Return the program and the capabilities as the official types read them.

    Raises:
        ValidationError: They refuse them.
    """
    stub = {"jsonrpc": "2.0", "id": 0}
    if version in HANDSHAKE_VERSIONS:
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        CLIENT_REQUESTS["initialize", version].model_validate(
            {**stub, "method": "initialize", "params": params}, by_name=False
        )
        read = InitializeRequestParams.model_validate(params, by_name=False)
        return read.client_info, read.capabilities
    params = {"_meta": make_meta(version, info, capabilities)}
    read = CLIENT_REQUESTS["tools/list", version].model_validate(
        {**stub, "method": "tools/list", "params": params}, by_name=False
    )
    meta = read.params.meta
    return (
        meta.io_modelcontextprotocol_client_info,
        meta.io_modelcontextprotocol_client_capabilities,
    )


def leave_out_unread(info, capabilities):
    """Return a description without what nobody reads."""
    if isinstance(info, dict):
        info = {name: value for name, value in info.items() if name != "icons"}
    if isinstance(capabilities, dict):
        kept = {name: value for name, value in capabilities.items() if name != "tasks"}
        empty = {each: {} for each in ("roots", "sampling") if isinstance(kept.get(each), dict)}
        capabilities = kept | empty
    return info, capabilities


def is_taken(read, *description):
    try:
        read(*description)
    except ValidationError:
        return False
    except ProtocolError as error:
        return error.code != INVALID_PARAMS  # the one code for it
    return True


def compare(version, info, capabilities):
    """Compare how a description is read with how the official types read it."""
    expected = is_taken(read_officially, version, *leave_out_unread(info, capabilities))
    assert is_taken(read_profile, version, info, capabilities) == expected, (info, capabilities)
    params = {"_meta": make_meta(version, info, capabilities)}
    if version == LATEST_MODERN:
        assert is_taken(read_envelope, params) == expected
    if not expected or not is_taken(read_officially, version, info, capabilities):
        return
    program, declared = read_officially(version, info, capabilities)
    profile = read_profile(version, info, capabilities)
    names = ("", "") if program is None else (program.name, program.version)
    assert (profile.client.name, profile.client.version) == names
    asks = declared.elicitation
    assert profile.can_elicit == (asks is not None)
    only_pages = asks is not None and asks.form is None and asks.url is not None
    assert profile.shows_forms == (asks is not None and not only_pages)
    extensions = declared.extensions or {}
    given_names = {name for name in CAPABILITIES if capabilities.get(name) is not None}
    assert profile.capabilities == given_names & {*messages.CAPABILITIES} | extensions.keys()
    assert profile.only_samples == (given_names == {"sampling"})
    formats = extensions.get(VIEW_EXTENSION, {}).get("mimeTypes")
    assert profile.shows_views == (formats == [MIME_TYPE])
    is_modern = version == LATEST_MODERN
    assert profile.can_follow_tasks == (is_modern and TASKS_EXTENSION in extensions)
    assert profile.is_handshake == (not is_modern)
    if is_modern:
        assert read_envelope(params) == profile


@given(st.sampled_from(VERSIONS), INFOS, DECLARED)
def test_a_client_is_what_the_official_types_read(version, info, capabilities):
    compare(version, info, capabilities)


@given(st.sampled_from(VERSIONS), broken())
def test_a_client_is_refused_that_the_official_types_refuse(version, description):
    info, capabilities = description
    if info is not None or version == LATEST_MODERN:  # else `InitializeParameters` refuses it
        compare(version, info, capabilities)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"elicitation": {}},
        {"elicitation": {"form": {}}},
        {"elicitation": {"url": {}}},
        {"elicitation": {"form": {}, "url": {}}},
        {"elicitation": {"form": None, "url": {}}},
        {"elicitation": {"form": {}, "url": None}},
        {"elicitation": {"url": {}, "later": 1}},
        {"elicitation": {"form": None}},
        {"elicitation": {"form": True}},
        {"elicitation": {"url": []}},
        {"elicitation": None},
        {"elicitation": True},
        {"sampling": {}},
        {"sampling": {}, "tasks": {}},
        {"sampling": {}, "experimental": {}},
        {"sampling": {}, "roots": {"listChanged": True}, "later": 1},
        {"sampling": {"tools": {}, "context": {}}, "roots": None},
        {"sampling": {"tools": 1}},
        {"sampling": 1},
        {"roots": {"listChanged": []}},
        {"roots": []},
        {"experimental": {"a": {"b": 1}}, "extensions": {TASKS_EXTENSION: {}}},
        {"experimental": {"a": None}},
        {"extensions": {"a": {"b": None}, VIEW_EXTENSION: {"mimeTypes": [MIME_TYPE]}}},
        {"extensions": {VIEW_EXTENSION: {"mimeTypes": MIME_TYPE}}},
        {"extensions": {"a": 1}},
        {"extensions": []},
        {"tasks": {"list": {}, "requests": {"elicitation": {"create": {}}}}},
        {"tasks": True},
        None,
        [],
    ],
)
def test_each_form_of_a_capability_is_taken_as_the_official_types_take_it(version, capabilities):
    compare(version, NAME, capabilities)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "info",
    [
        NAME,
        NAME | {"title": "C", "description": "d", "websiteUrl": "https://example.com", "more": 1},
        NAME | {"title": None, "description": None, "websiteUrl": None},
        NAME | {"title": 0},
        NAME | {"description": []},
        NAME | {"websiteUrl": 1},
        NAME | {"icons": [{"src": "data:,"}]},
        NAME | {"icons": 1},
        NAME | {"version": 1},
        NAME | {"name": None},
        {"name": "c"},
        {"version": "1"},
        {},
        [],
        "c",
        0,
    ],
)
def test_each_form_of_a_program_is_taken_as_the_official_types_take_it(version, info):
    compare(version, info, {})


def test_a_long_name_is_cut():
    profile = read_profile(LATEST_HANDSHAKE, {"name": "n" * 300, "version": "v" * 300}, {})
    assert (profile.client.name, profile.client.version) == ("n" * MAX_NAME, "v" * MAX_NAME)


def test_a_profile_belongs_to_its_session():
    session = object()
    assert read_profile(LATEST_HANDSHAKE, NAME, {}, session).connection is session


# -- the envelope of a request

META = make_meta(LATEST_MODERN, NAME, {})


@pytest.mark.parametrize("key", [PROTOCOL_VERSION_KEY, CLIENT_CAPABILITIES_KEY])
def test_an_envelope_without_a_part_is_refused_by_the_name_of_the_part(key):
    with pytest.raises(ProtocolError, match=f"has no '{key}'") as caught:
        read_envelope({"_meta": {name: value for name, value in META.items() if name != key}})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize("params", [None, {}, {"_meta": None}, {"_meta": []}, {"_meta": {}}])
def test_no_envelope_lacks_both_parts(params):
    assert not has_envelope(params)
    both = f"has no '{PROTOCOL_VERSION_KEY}' and no '{CLIENT_CAPABILITIES_KEY}'"
    with pytest.raises(ProtocolError, match=both):
        read_envelope(params)


def test_a_client_need_not_say_which_program_it_is():
    meta = {name: value for name, value in META.items() if name != CLIENT_INFO_KEY}
    profile = read_envelope({"_meta": meta})
    assert (profile.program, profile.is_handshake) == ("", False)


@pytest.mark.parametrize("version", ["2025-11-25", "2099-01-01", "", "x"])
def test_another_version_is_refused_with_those_that_there_are(version):
    """Before its other parts are looked at: a later version may have others."""
    params = {"_meta": {PROTOCOL_VERSION_KEY: version, CLIENT_CAPABILITIES_KEY: []}}
    assert has_envelope(params)
    with pytest.raises(ProtocolError) as caught:
        read_envelope(params)
    assert caught.value.code == UNSUPPORTED_PROTOCOL_VERSION
    assert caught.value.data == {"supported": [LATEST_MODERN], "requested": version}


@pytest.mark.parametrize("version", [1, None, ["2026-07-28"], {}])
def test_a_version_that_is_no_text_is_malformed(version):
    with pytest.raises(ProtocolError) as caught:
        read_envelope({"_meta": META | {PROTOCOL_VERSION_KEY: version}})
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize("level", [*LOG_LEVELS, None])
def test_each_log_level_of_mcp_is_taken(level):
    assert read_envelope({"_meta": META | {LOG_LEVEL_KEY: level}}).client.name == "editor"


@pytest.mark.parametrize("level", ["loud", "", 1, [], {}])
def test_another_log_level_is_refused(level):
    with pytest.raises(ProtocolError, match="must be one of") as caught:
        read_envelope({"_meta": META | {LOG_LEVEL_KEY: level}})
    assert caught.value.code == INVALID_PARAMS
