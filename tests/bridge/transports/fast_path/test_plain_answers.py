"""The answers to plain requests say what the SDK would say."""

import json
from types import SimpleNamespace

import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server
from mcp.server.runner import ServerRunner
from msgspec import structs

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.server.declaration import SERVER_INFO
from mcp_notebook.bridge.server.forms.result_forms import make_call_result
from mcp_notebook.bridge.server.forms.tool_form import VERSIONS, make_prompt_form
from mcp_notebook.bridge.server.resources import resources
from mcp_notebook.bridge.server.resources.declared_resources import DeclaredResources
from mcp_notebook.bridge.server.sessions.protocol_error import ProtocolError
from mcp_notebook.bridge.transports.fast_path.plain_answers import PlainAnswers, expand, write_error
from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.wire import messages

SERVER = Server(**SERVER_INFO)
PICTURE = bytes(range(256))
RESULTS = [
    Result(),
    Result([Text("a"), Text('Ünï\u2028 "q" \\ \x00')], is_error=True),
    Result([Text("a")], structured={"a": [1, 2.5, None, True, "x"]}),
    Result([Text("a")], structured=[1, 2]),
    Result([Text("long")], structured={"nan": float("nan"), "inf": float("-inf"), "big": 10**30}),
    Result([Image(PICTURE), Audio(PICTURE), Resource("a:b", PICTURE), Resource("a:c", "text")]),
    Result(
        [
            Image(b"", "image/webp", audience="user", priority=0.5, last_modified="2025-01-01"),
            Resource("a:b", b"", audience=("user", "assistant"), priority=1),
            ResourceLink("a:b", "name"),
            ResourceLink("a:b", "name", "title", "about", "text/csv", 7, audience="user"),
        ],
        meta={"a.b/c": {"d": None}},
    ),
    Result([Image(PICTURE * 2_000)]),
    Result([Text("a")], meta={types.SERVER_INFO_META_KEY: {"name": "other"}}),
    Result([Text("a")], meta={types.SERVER_INFO_META_KEY: None}),
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_the_sdks(result):
    answers = PlainAnswers(SimpleNamespace())
    runner = ServerRunner(SERVER, None, None)
    for version in VERSIONS:
        pieces = answers.write_result(result, version)
        made = make_call_result(result, version)
        shaped = runner._serialize("tools/call", version, made)
        message = types.JSONRPCResponse(jsonrpc="2.0", id=1, result=shaped)
        expected = json.loads(message.model_dump_json())["result"]
        assert json.loads(b"".join(expand(pieces))) == expected, version


ICON = {"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"]}
SCHEMA = {"properties": {"a": {"title": "A", "description": "An a."}, "b": {}}, "required": ["a"]}
ABOUT = {"title": "T", "description": "About \u2028 it.", "meta": {"a.b/c": {"d": None}}}
INFOS = [
    messages.ToolInfo(name="plain", input_schema={}, uri="data://plain"),
    messages.ToolInfo(
        name="full",
        input_schema=SCHEMA,
        uri="data://full/{a}",
        icons=[ICON, {"src": "data:,"}, ICON | {"theme": "dark"}],
        mime_type="text/csv",
        items=[messages.ListedItem("x", description="An x.", meta={"e": [1, None]})],
        **ABOUT,
    ),
    messages.ToolInfo(
        name="skill/SKILL.md",
        input_schema={},
        uri="skill://skill/SKILL.md",
        text="Ünï",
        front_matter={"name": "skill"},
        icons=[ICON],
        **ABOUT,
    ),
    messages.ToolInfo(name="bare", input_schema={"properties": {"a": True}}, uri="d://{a}"),
]
KEPT = [
    messages.ResourceInfo(number=1, uri="notebook://k/1", name="a"),
    messages.ResourceInfo(
        number=2,
        uri="notebook://k/2",
        name="b",
        title="B",
        description="About b.",
        mime_type="text/csv",
        size=0,
        modified=1.5,
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_forms_of_prompts_and_resources_are_the_sdks(version):
    tools = [structs.replace(info, kind="resource") for info in INFOS]
    catalog = Catalog()
    catalog.set_kernel("k", notebook="sales", tools=tools)
    declared = DeclaredResources(PermittedTools(catalog), lambda _entry, _uri: 1.5)
    lists = {
        "prompts": [make_prompt_form(info.name, info, version) for info in INFOS],
        "resources": [
            *declared.list_forms(OWNER, version),
            *(resources._make_form(info, version) for info in KEPT),
        ],
        "resourceTemplates": declared.list_template_forms(OWNER, version),
    }
    assert [len(forms) for forms in lists.values()] == [4, 5, 2]
    models = {
        "prompts": types.ListPromptsResult,
        "resources": types.ListResourcesResult,
        "resourceTemplates": types.ListResourceTemplatesResult,
    }
    runner = ServerRunner(SERVER, None, None)
    for name, forms in lists.items():
        method = "resources/templates/list" if name == "resourceTemplates" else f"{name}/list"
        made = runner._serialize(method, version, models[name].model_validate({name: forms}))
        assert made[name] == forms


def test_an_error_is_the_sdks():
    error = types.ErrorData(code=-32602, message="no Ü", data={"a": None})
    for request_id in (1, "a\n"):
        message = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        answer = write_error(request_id, ProtocolError(error.code, error.message, error.data))
        dumped = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert json.loads(b"".join(expand(answer.pieces))) == dumped
        assert answer.error_code == -32602
