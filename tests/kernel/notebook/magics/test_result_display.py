"""The result of ``%mcp call``, as the notebook shows it."""

from bs4 import BeautifulSoup

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def test_mcp_call_shows_a_link_in_a_few_words(kernel):
    kernel.ok(
        "%%mcp_tool\nfrom mcp_notebook import ResourceLink\ndef link() -> ResourceLink:\n    'L.'\n"
        "    return ResourceLink('http://x/', 'a.csv', mime_type='text/csv', size=5)"
    )
    assert kernel.ok("%mcp call link").stdout.strip() == "a.csv (text/csv, 5 bytes): http://x/"


def test_mcp_call_plays_a_sound_and_shows_a_document(kernel):
    kernel.ok(
        "%%mcp_tool\nfrom mcp_notebook import Audio, Resource\ndef heard() -> list:\n    'H.'\n"
        "    parts = [Resource('a:b', 'c'), Resource('a:d', b'\\0\\1', 'application/zip')]\n"
        "    return [Audio(b'ID3' + bytes(9), 'audio/mpeg'), *parts]\n"
    )
    output = kernel.ok("%mcp call heard")
    assert 'type="audio/mpeg"' in output.displays[0]["text/html"]
    assert output.stdout == "a:b (text/plain):\nc\na:d (application/zip, 2 bytes)\n"


def test_an_image_is_displayed_and_an_error_is_announced(kernel):
    kernel.ok(
        "%%mcp_tool\nfrom mcp_notebook import Image, ToolError\ndef seen() -> Image:\n    'S.'\n"
        f"    return Image(__import__('base64').b64decode({PNG!r}))\n"
        "def fails() -> None:\n    'F.'\n    raise ToolError('Not today.')"
    )
    assert kernel.ok("%mcp call seen").displays == [{"image/png": PNG}]
    assert kernel.ok("%mcp call fails").stdout == "The client would get an error:\nNot today.\n"


EVIL = """%%mcp_tool
from IPython.display import HTML, display
from mcp_notebook import Audio, Image, Resource, ResourceLink, Text
EVIL = 'x"><script>alert(1)</script><img src=x onerror=alert(1)>'

def evil() -> list:
    'E.'
    display(HTML(f"<audio src='data:audio/{EVIL};base64,dW5rbm93bg=='></audio>{EVIL}"))
    return [
        Text(EVIL),
        EVIL,
        Audio(b'unknown', f'audio/{EVIL}'),
        Image(b'alert(1)', 'application/javascript'),
        Image(b'<svg>', 'image/svg+xml'),
        Resource(EVIL, EVIL, EVIL),
        Resource('a:b', b'<script>', 'text/html'),
        ResourceLink('javascript:x', EVIL),
    ]
"""


def test_no_result_brings_a_script_into_the_notebook(kernel):
    """Somebody else's bytes and names, in all kinds of blocks."""
    kernel.ok(EVIL)
    output = kernel.ok("%mcp call evil")
    assert "<script>" in output.stdout  # as text
    kinds = {kind for data in output.displays for kind in data}
    assert kinds == {"text/plain", "text/html"}
    for data in output.displays:
        tags = BeautifulSoup(data["text/html"], "html.parser").find_all()
        assert [tag.name for tag in tags] == ["audio", "source"]
