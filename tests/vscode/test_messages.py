"""The shapes in TypeScript are those of the protocol: neither side has what the other lacks.

What Python's structs are in JSON is generated as a schema; the interfaces are read as text.
"""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcp_notebook._version import __version__
from mcp_notebook.discovery.records import Record
from mcp_notebook.wire import messages

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(
    (ROOT / name).read_text("utf-8") for name in ("panel/messages.ts", "vscode/src/link.ts")
)
ALL = {
    "IClient": messages.SeenClient,
    "ITool": messages.SeenTool,
    "IOpenCall": messages.OpenCall,
    "IQuestion": messages.OpenQuestion,
    "IEndedCall": messages.EndedCall,
    "IProposal": messages.OpenProposal,
    "IAccepted": messages.AcceptedProposal,
    "INotebookState": messages.NotebookState,
    "ICallDetails": messages.CallDetails,
    "ICallStopped": messages.CallStopped,
    "IPanelAnswer": messages.PanelAnswer,
    "IRecord": Record,
}
"""The interfaces, and what they describe."""
OTHERS = {
    "INotebookState": {"trouble", "trouble_kind"},  # of a kernel that tells nothing
}
"""Members that are not the protocol's."""
BRIDGES = "notebook"
"""A kind that no kernel declares."""
UNUSED = {
    "IOpenCall": {"task"},
    "INotebookState": {"counts"},  # in `Changes`
    "ICallDetails": {"id", "is_known", "has_cell"},  # in `DetailsMessage`
    "IRecord": {"version", "protocol", "first_notebook", "jupyter_id"},
}
"""Members that TypeScript does not read."""


def read_members(name: str) -> dict[str, tuple[str, bool]]:
    """Return the types of an interface's members, and whether they may be absent."""
    body = re.search(rf"export interface {name} {{\n(.*?)\n}}", SOURCE, re.DOTALL)
    assert body, name
    lines = re.findall(r"^  (\w+)(\??): ([^;]+);", body[1], re.MULTILINE)
    return {member: (resolve(type_), bool(mark)) for member, mark, type_ in lines}


def resolve(type_: str) -> str:
    """Return a type with the alternatives of its aliases, in order and without null."""
    alias = re.search(rf"export type {re.escape(type_)} =\s*([^;]+);", SOURCE)
    if alias:
        return resolve(alias[1])
    return " | ".join(sorted(part for part in type_.split(" | ") if part != "null"))


def describe(schema: dict[str, Any]) -> str:
    """Return a schema as TypeScript."""
    if "anyOf" in schema:
        parts = [describe(part) for part in schema["anyOf"] if part != {"type": "null"}]
        return " | ".join(sorted(parts))
    if "enum" in schema:
        return " | ".join(sorted(f"'{value}'" for value in schema["enum"] if value != BRIDGES))
    if "$ref" in schema:
        struct = schema["$ref"].rpartition("/")[2]
        return next(name for name, type_ in ALL.items() if type_.__name__ == struct)
    if schema["type"] == "array":
        return f"{describe(schema['items'])}[]"
    return {"integer": "number"}.get(schema["type"], schema["type"])


@pytest.mark.parametrize("name", ALL)
def test_an_interface_has_the_members_of_its_message(name):
    _, components = msgspec.json.schema_components([ALL[name]])
    schema = components[ALL[name].__name__]
    properties = {
        member: part
        for member, part in schema["properties"].items()
        if member not in UNUSED.get(name, ()) and member != "type"
    }
    members = read_members(name)
    written = members.keys() - OTHERS.get(name, set()) - {"type"}
    assert written == properties.keys()
    for member, part in properties.items():
        type_, may_be_absent = members[member]
        described = describe(part)
        if member == "kind":  # one type for all, of which no message has all
            assert described in (type_, type_.replace(" | 'skill'", ""))
        else:
            assert (member, type_) == (member, described)
        # A notebook's state is complete once it is known: only changes lack parts.
        is_optional = {"type": "null"} in part.get("anyOf", ())
        assert name == "INotebookState" or is_optional <= may_be_absent, member


def test_each_request_is_one_that_kernels_read():
    sent = SOURCE[
        SOURCE.index("export type Request") : SOURCE.index("export interface ICallStopped")
    ]
    requests = re.findall(r"^  \| (\{ type: '\w+'.*?\})(?:;|$)", sent, re.MULTILINE)
    tags = {kind.__struct_config__.tag: kind for kind in messages.Message.__subclasses__()}
    names = set()
    for request in requests:
        members = dict(re.findall(r"(\w+)\??: ([^;}]+?)(?:;| \})", request))
        kind = tags[members.pop("type").strip("'")]
        names.add(kind)
        assert members.keys() <= set(kind.__struct_fields__), kind
        needed = {field.name for field in msgspec.structs.fields(kind) if field.required}
        assert needed <= members.keys(), kind
    assert {messages.Hello, messages.WatchNotebook, messages.StopCall, messages.AskCall} < names


def test_the_extension_has_the_version_of_the_package():
    described = json.loads((ROOT / "vscode" / "package.json").read_text("utf-8"))
    assert described["version"] == __version__


def test_frontends_and_the_version_are_the_protocols():
    assert resolve("Frontend") == " | ".join(
        sorted(f"'{name}'" for name in messages.Frontend.__args__)
    )
    assert f"PROTOCOL = {messages.PROTOCOL_VERSION};" in SOURCE
