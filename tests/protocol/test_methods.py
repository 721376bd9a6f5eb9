"""The parameters of requests: the official types are the judge of what is valid."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods as official
from pydantic import ValidationError

from mcp_notebook.bridge.server.sessions.client_profile import read_envelope, read_profile
from mcp_notebook.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from mcp_notebook.protocol.methods import INITIALIZE, METHODS, read_parameters
from mcp_notebook.protocol.versions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    VERSIONS,
)

INFO = {"name": "c", "version": "1", "title": "t", "websiteUrl": "https://x.example"}
CAPABILITIES: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {"listChanged": True},
    "experimental": {"x": {}},
    "extensions": {"a.example/b": {"c": 1}},
}
META = {
    PROTOCOL_VERSION_KEY: MODERN_VERSIONS[-1],
    CLIENT_CAPABILITIES_KEY: CAPABILITIES,
    CLIENT_INFO_KEY: INFO,
    LOG_LEVEL_KEY: "info",
    "progressToken": "p",
}
ANSWERED = {
    "inputResponses": {"k": {"action": "accept", "content": {"a": 1}}},
    "requestState": "s",
}
CALL = {"name": "n", "arguments": {"a": "x"}, **ANSWERED}
LIST = {"cursor": "c"}
URI = {"uri": "a:b"}
FILTER = {"toolsListChanged": True, "promptsListChanged": False, "resourcesListChanged": None}
VALID: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": CAPABILITIES,
        "clientInfo": INFO,
    },
    "ping": {},
    "server/discover": {},
    "tools/list": LIST,
    "tools/call": CALL,
    "prompts/list": LIST,
    "prompts/get": CALL,
    "resources/list": LIST,
    "resources/templates/list": LIST,
    "resources/read": {**URI, **ANSWERED},
    "resources/subscribe": URI,
    "resources/unsubscribe": URI,
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "n"},
        "argument": {"name": "a", "value": "v"},
        "context": {"arguments": {"a": "b"}},
    },
    "logging/setLevel": {"level": "info"},
    "subscriptions/listen": {"notifications": {**FILTER, "resourceSubscriptions": ["a:b"]}},
}
OF_EXTENSIONS = {
    "tasks/get": {"taskId": "t"},
    "tasks/update": {"taskId": "t", "inputResponses": {}},
    "tasks/cancel": {"taskId": "t"},
    "skills/list": LIST,
    "skills/get": URI,
    "resources/directory/read": {**URI, **LIST},
}
ODD = [
    None, True, 0, 7, 1.5, "", "a", "info", "2026-07-28",
    [], ["a"], [1], {}, {"a": "b"}, {"a": 1}, {"a": {}}, {"a": None},
    {"type": "ref/resource", "uri": "a:b"}, {"type": "ref/resource", "name": "n"},
    {"type": "ref/prompt", "name": "a", "title": "t"}, {"type": "ref/tool", "name": "a"},
]  # fmt: skip
OTHERWISE = (
    # A malformed answer of the user is asked for again.
    ("inputResponses",),
    # Not looked at: nothing depends on it.
    ("capabilities", "roots", "listChanged"),
    ("_meta", CLIENT_CAPABILITIES_KEY, "roots", "listChanged"),
    ("capabilities", "tasks"),
    # That the version in the body is served is checked elsewhere, with a code of its own.
    ("_meta", PROTOCOL_VERSION_KEY),
    # The official types take true for 1, and would repeat that.
    ("_meta", "progressToken"),
    # They take 0 for false.
    *(("notifications", name) for name in FILTER),
)
"""Where parameters are accepted or refused unlike the official types do, and why."""


def paths(value, at=()):
    """Yield the places of all members of an object."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*at, name)
            yield from paths(item, (*at, name))


@st.composite
def requests(draw):
    """A method, a version, parameters with up to two things changed, and where."""
    method, version = draw(st.sampled_from(sorted(VALID))), draw(st.sampled_from(VERSIONS))
    meta = META if version in MODERN_VERSIONS else {"x": 1, "progressToken": 1}
    params = copy.deepcopy({**VALID[method], "_meta": meta})
    changed = []
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from([*paths(params), ("x",)]))
        *above, name = place
        inner = params
        for step in above:
            inner = inner[step]
        changed.append(place)
        how = draw(st.sampled_from(["remove", "replace", "replace", "add"]))
        if how == "remove":
            inner.pop(name, None)
        else:
            odd = copy.deepcopy(draw(st.sampled_from(ODD)))
            inner[name if how == "replace" else "another"] = odd
    return method, version, params, changed


def find_code(method, version, params):
    """Return the code with which a request is refused, None if it is not."""
    try:
        parameters = read_parameters(method, version, params)
        if method == INITIALIZE:
            read_profile(version, parameters.client_info, parameters.capabilities)
        elif version in MODERN_VERSIONS:
            read_envelope(params)
    except ProtocolError as error:
        return error.code
    return None


def find_official_code(method, version, params):
    """Return what the official types say of it."""
    try:
        official.parse_client_request(method, version, params)
    except KeyError:
        return METHOD_NOT_FOUND
    except ValidationError:
        return INVALID_PARAMS
    return None


@given(requests())
def test_parameters_are_accepted_and_refused_as_by_the_official_types(request):
    method, version, params, changed = request
    code, judged = find_code(method, version, params), find_official_code(method, version, params)
    is_otherwise = any(place[: len(at)] == at for place in changed for at in OTHERWISE)
    assert code == judged or (is_otherwise and METHOD_NOT_FOUND not in (code, judged))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", sorted(VALID))
def test_each_method_is_in_the_versions_that_the_official_types_say(method, version):
    meta = {"_meta": META} if version in MODERN_VERSIONS else {}
    params = VALID[method] | meta
    is_official = (method, version) in official.CLIENT_REQUESTS
    assert find_code(method, version, params) == (None if is_official else METHOD_NOT_FOUND)
    if not is_official:  # whatever else is wrong with it
        assert find_code(method, version, {"_meta": 7}) == METHOD_NOT_FOUND


def test_the_table_has_the_methods_of_mcp_but_those_of_core_tasks_and_of_three_extensions():
    ours = {
        (method, version)
        for method, kind in METHODS.items()
        for version in VERSIONS
        if kind.since <= version <= kind.until
    }
    others = {method for method, _ in ours - set(official.CLIENT_REQUESTS)}
    assert set(official.CLIENT_REQUESTS) <= ours
    assert others == set(OF_EXTENSIONS)


@pytest.mark.parametrize("method", OF_EXTENSIONS)
def test_methods_of_extensions_have_parameters_too(method):
    params = OF_EXTENSIONS[method]
    version = MODERN_VERSIONS[-1]
    assert read_parameters(method, version, params | {"_meta": META}).meta == META
    for name in params:
        with pytest.raises(ProtocolError) as refusal:
            read_parameters(method, version, params | {name: 7})
        assert refusal.value.code == INVALID_PARAMS


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_tasks_are_of_the_era_without_sessions(method, version):
    assert find_code(method, version, OF_EXTENSIONS[method]) == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    "method", ["tasks/list", "tasks/result", "roots/list", "elicitation/create", "", "Ping", "x"]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_method_that_there_is_not_is_named_in_the_error(method, version):
    with pytest.raises(ProtocolError) as refusal:
        read_parameters(method, version, None)
    assert refusal.value.form == {
        "code": METHOD_NOT_FOUND,
        "message": "Method not found",
        "data": method,
    }


@pytest.mark.parametrize("params", [None, {}, {"_meta": None}, {"_meta": {}}, {"x": 1}])
def test_parameters_that_may_be_missing_may_be_missing(params):
    assert read_parameters("tools/list", HANDSHAKE_VERSIONS[0], params).cursor is None


@pytest.mark.parametrize("token", [True, 1.5, [], {}])
def test_a_progress_token_is_a_text_or_a_whole_number(token):
    with pytest.raises(ProtocolError, match="`progressToken`"):
        read_parameters("ping", HANDSHAKE_VERSIONS[0], {"_meta": {"progressToken": token}})


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_the_user_come_with_a_request_only_since_it_may_be_repeated(version):
    params = {"name": "x", "requestState": "sealed", "inputResponses": {"a": {}}}
    read = read_parameters("tools/call", version, params)
    answers = (read.request_state, read.input_responses)
    assert answers == (("sealed", {"a": {}}) if version in MODERN_VERSIONS else (None, None))
