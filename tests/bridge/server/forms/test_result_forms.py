"""Results in MCP's form, in each version of the protocol."""

import json

import pytest
from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent
from mcp_types.methods import parse_server_result

from mcp_notebook import Audio, Image, Resource, Result, Text
from mcp_notebook import ResourceLink as Link
from mcp_notebook.bridge.server.declaration import SERVER_INFO
from mcp_notebook.bridge.server.forms.result_forms import make_call_form
from mcp_notebook.bridge.server.requests import expand, write_result
from mcp_notebook.protocol.versions import HANDSHAKE_VERSIONS, SERVER_INFO_KEY, VERSIONS

RESULT = Result(
    [
        Text("a text", audience=("user",), priority=0.5, last_modified="2026-01-01T00:00:00Z"),
        Image(b"picture"),
        Audio(b"sound", "audio/wav", audience=("user",)),
        Resource("file:///a.txt", "document"),
        Link(
            "notebook://k/1/table.csv",
            "table.csv",
            title="The whole table: 1,000 rows",
            description="CSV",
            mime_type="text/csv",
            size=12_345,
        ),
        Link("https://example.com/", "bare"),
    ],
    structured={"a": 1},
    meta={"com.example/a": 1},
)


def read_written(result, version):
    """Return a result as the official types read it, in either way in which it is written."""
    written = json.loads(b"".join(expand(write_result(result, version))))
    form = {"resultType": "complete", **make_call_form(result, version)}
    read, same = (parse_server_result("tools/call", version, each) for each in (written, form))
    assert version in HANDSHAKE_VERSIONS or read.meta.pop(SERVER_INFO_KEY) == SERVER_INFO
    assert read.model_dump() == same.model_dump()
    return read


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_gets_a_valid_result_with_something_for_each_block(version):
    result = read_written(RESULT, version)
    assert len(result.content) == len(RESULT.content)
    has_data = version >= "2025-06-18"  # which brought it
    assert result.structured_content == (RESULT.structured if has_data else None)
    text, image, _, resource, *_ = result.content
    assert isinstance(image, ImageContent)
    assert isinstance(resource, EmbeddedResource)
    assert text.annotations.audience == ["user"]
    assert (text.annotations.last_modified is None) == (version < "2025-06-18")
    assert result.meta == {"com.example/a": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_link_is_a_text_that_names_it_where_there_are_no_links(version):
    _, _, _, _, link, bare = read_written(RESULT, version).content
    if version >= "2025-06-18":
        assert isinstance(link, ResourceLink)
        assert (link.title, link.size) == ("The whole table: 1,000 rows", 12_345)
        return
    assert link.text == (
        "[The whole table: 1,000 rows (text/csv, 12,345 bytes): CSV. "
        'Read it by read_notebook_resource(uri="notebook://k/1/table.csv")]'
    )
    assert bare.text == "[bare. Its address: https://example.com/]"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_is_a_text_that_says_so_where_there_are_no_sounds(version):
    sound = read_written(RESULT, version).content[2]
    if version > "2024-11-05":
        assert isinstance(sound, AudioContent)
        return
    assert isinstance(sound, TextContent)
    assert "audio/wav, 5 bytes" in sound.text
    assert "MCP 2024-11-05" in sound.text
    assert sound.annotations.audience == ["user"]
