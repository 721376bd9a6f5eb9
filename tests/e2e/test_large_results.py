"""Results of more bytes than clients take, and documents of more: the official client gets them."""

import base64

import pytest
from clients import http_bridge, over_http, pictures_of, text_of
from live import live_kernel
from mcp_types import ResourceLink

pytestmark = pytest.mark.anyio

CELL = """%%mcp_tool
import os
import PIL.Image
from mcp_notebook import Context, Resource

def noise(ctx: Context, steps: int = 0) -> list:
    "Eight pictures of a megabyte each, that nothing makes smaller but fewer pixels."
    for step in range(steps):
        ctx.progress(step, steps)
    return [PIL.Image.frombytes("RGB", (600, 600), os.urandom(3 * 600**2)) for _ in range(8)]

def document(size: int = 5_000_000) -> Resource:
    "A document that is a link."
    return Resource("file:///noise.bin", os.urandom(size), "application/octet-stream")
"""


@pytest.fixture(scope="module")
def noisy(module_home):
    with live_kernel(module_home, notebook=str(module_home / "noisy.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(CELL)
        yield kernel


@pytest.fixture(scope="module")
def url(noisy):
    with http_bridge(noisy.home) as served:
        yield served.url


@pytest.mark.parametrize(
    ("era", "steps"),
    [
        pytest.param("auto", 0, id="answer alone-auto"),
        pytest.param("legacy", 2, id="behind progress-legacy"),
        pytest.param("legacy", 0, id="answer alone-legacy", marks=pytest.mark.slow),
        pytest.param("auto", 2, id="behind progress-auto", marks=pytest.mark.slow),
    ],
)
async def test_eight_pictures_of_a_megabyte_are_one_answer(url, era, steps):
    async def heard(*_):
        pass

    async with over_http(url, era) as client:
        called = {"arguments": {"steps": steps}, "progress_callback": heard}
        result = await client.call_tool("noise", **called)
    pictures = pictures_of(result)
    assert len(pictures) == 8
    assert sum(len(base64.b64decode(picture.data)) for picture in pictures) <= 2**19
    assert text_of(result).count("from 600x600 to") == 8
    links = [block for block in result.content if isinstance(block, ResourceLink)]
    assert [link.title for link in links] == ["The original picture: 600x600 pixels"] * 8


@pytest.mark.slow
@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.slow), "auto"])
async def test_documents_of_more_than_an_event_takes_are_read(url, era):
    async with over_http(url, era) as client:
        _, link = (await client.call_tool("document", {})).content
        (read,) = (await client.read_resource(str(link.uri))).contents
    assert len(base64.b64decode(read.blob)) == 5_000_000
