"""notebooks/results_gallery.ipynb, run without a frontend: what real clients get of each tool."""

import base64
import io
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import nbformat
import pytest
from clients import http_bridge, over_http, text_of
from listing import list_tools
from live import Link, live_kernel, record_of, tools_of

from mcp_notebook.content import Image, Text

pytestmark = [
    # The first test waits for all calls: a busy machine may need minutes for them.
    pytest.mark.timeout(600),
    pytest.mark.slow,
    pytest.mark.needs("altair", "plotly", "polars", "pyarrow", "seaborn", "sympy", "vl_convert"),
]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "results_gallery.ipynb"
ONCE = {"endless"}
"""Not called in a cell, too: it takes five seconds."""


class Shown:
    """What a client got of each tool, and what can be read at the links."""

    def __init__(self):
        self.results = {}
        self.read = {}
        """The contents by URI."""


async def _ask(url, shown):
    async with over_http(url, "auto") as client:
        for tool in await list_tools(client):
            result = await client.call_tool(tool.name, {})
            shown.results[tool.name] = result
            for link in links_of(result):
                (shown.read[link.uri],) = (await client.read_resource(link.uri)).contents


@pytest.fixture(scope="module")
def gallery():
    # A copy: the notebook writes a file beside itself.
    with TemporaryDirectory(prefix="mcpnb-") as folder:
        notebook = shutil.copy(NOTEBOOK, folder)
        shown = Shown()
        with http_bridge(Path(folder), notebook) as served:
            anyio.run(_ask, served.url, shown)
        yield shown


def links_of(result):
    """Return the links to what the kernel keeps."""
    return [
        block
        for block in result.content
        if block.type == "resource_link" and block.uri.startswith("notebook://")
    ]


def kinds(result):
    return [block.type for block in result.content]


PICTURE, TEXT, LINK, SOUND = "image", "text", "resource_link", "audio"
KINDS = {
    "prints_shows_returns": [TEXT] * 4,
    "nothing": [TEXT],
    "figure_returned": [PICTURE, TEXT],
    "figure_shown": [PICTURE, TEXT],
    "figure_left_open": [PICTURE, TEXT, TEXT],
    "part_of_a_figure": [PICTURE, TEXT],
    "grid_of_seaborn": [PICTURE, TEXT],
    "first_frame": [PICTURE, TEXT],
    "pil_image": [PICTURE],
    "array_as_image": [PICTURE],
    "encoded": [PICTURE],
    "large_picture": [PICTURE, TEXT, LINK],
    "many_pictures": [*[PICTURE] * 7, *[LINK] * 4, PICTURE, TEXT],
    "altair_chart": [PICTURE, LINK],
    "drawing": [PICTURE, LINK],
    "formula": [TEXT],
    "markdown": [TEXT],
    "latex": [TEXT],
    "html": [TEXT],
    "json_data": [TEXT],
    "sound": [SOUND],
    "video": [TEXT],
    "frame": [TEXT],
    "long_frame": [TEXT, LINK, LINK],
    "wide_frame": [TEXT, LINK, LINK],
    "styled": [TEXT],
    "indexed": [TEXT],
    "typed": [TEXT],
    "empty_frame": [TEXT],
    "column": [TEXT],
    "polars_frame": [TEXT],
    "arrow_table": [TEXT],
    "matrix": [TEXT],
    "records": [TEXT],
    "colored": [TEXT],
    "long_text": [TEXT, LINK],
    "link": [LINK],
    "document": ["resource"],
    "file": [TEXT],
    "file_elsewhere": [TEXT],
    "tone": [SOUND],
    "noted": [TEXT, TEXT],
    "extremes": [TEXT],
    "by_hand": [TEXT],
    "rows": [TEXT],
    "station": [TEXT],
    "stations": [TEXT],
    "broken": [TEXT],
    "endless": [TEXT],
    "circular": [TEXT],
    "odd_numbers": [TEXT],
    "odd_text": [TEXT],
    "no_picture": [TEXT],
    "huge_figure": [PICTURE, TEXT],
    "generator": [TEXT, LINK, TEXT],
    "async_generator": [TEXT],
}
"""The blocks that clients get of each tool. Plotly's is of either kind: a picture where kaleido and
Chrome are installed, else a text."""
SAYS = {
    "nothing": "Done: the tool returned nothing.",
    "figure_left_open": "months by their rain, in mm",
    "first_frame": "[Figure x 0 to ",
    "large_picture": "[The picture was scaled down from 4000x3000 to 1568x1176 pixels.]",
    "many_pictures": "[4 of 12 pictures are left out; links replace them",
    "formula": r"\int \sqrt{\frac{1}{x}}\, dx",
    "markdown": "**Seattle** is *rainy*.",
    "latex": r"$\frac{1}{2}$",
    "html": "### Rain\n\n| month | mm |\n|---|---|\n| January | 173 |",
    "json_data": '{"city":"Seattle","mm":[173,92]}',
    "video": "[a video, which is not fetched: https://example.com/rain.mp4]",
    "frame": "DataFrame: 3 rows x 6 columns; date datetime64",
    "long_frame": "Only the first 5 and last 5 rows are shown; 1,451 between them are left out.",
    "wide_frame": "170 columns left out: day_15, day_16,",
    "styled": "| 2012-01-01 00:00:00 | 13 °C |",
    "indexed": "year,weather,temp_max / min,temp_max / max,wind / mean\n2012,drizzle,3.3,25.6,2.51",
    "typed": "2026-03-01 00:00:00-08:00,rain",
    "empty_frame": "DataFrame: 0 rows x 6 columns",
    "column": "Series: 3 rows, precipitation float64\n\ndate,precipitation\n2015-10-01,122.4",
    "polars_frame": "polars DataFrame: 2 rows x 2 columns; city String, mm Float64\n\ncity,mm",
    "arrow_table": "pyarrow Table: 2 rows x 2 columns; city string, mm double\n\ncity,mm",
    "matrix": "array of shape (3, 4), int64\n\n0,1,2,3\n4,5,6,7\n8,9,10,11",
    "records": "list of dicts: 12 rows x 2 columns; month int, mm float\n\nmonth,mm\n1,173.3",
    "colored": "green and plain",
    "long_text": "of 1,088,889 characters, ",
    "file": "date,precipitation\n2012-01-01,173.3",
    "file_elsewhere": "is outside the folders that the notebook shares",
    "extremes": '{"coldest":-3.8,"warmest":35.0}',
    "by_hand": "5 days",
    "rows": "DataFrame: 2 rows x 6 columns",
    "station": "**Seattle**: 173 mm",
    "stations": "**New York**: 92 mm\n\n**Duwamish**: 3.2 m",
    "broken": "<an object of type Broken whose repr failed: ValueError: no words for it>",
    "endless": "[an object of type Endless whose repr took longer than 5 s]",
    "circular": '[1,"..."]',
    "odd_numbers": '["NaN","Infinity","<an int of 16,610 bits, too long to print>"]',
    "odd_text": "a\ufffdb\ufffdc",
    "no_picture": "are not a picture: give PNG, JPEG, WebP or GIF.",
    "huge_figure": "The figure, of 300 x 300 inches and 30,000 x 30,000 pixels, was drawn at",
    "generator": "only the first 1,000 items were taken; the others are lost",
    "async_generator": '["January","February"]',
}
DATA = {
    "extremes": {"coldest": -3.8, "warmest": 35.0},
    "by_hand": {"about_this_result": "5 days", "days": 5, "mean": None},
}


def test_each_tool_of_the_gallery_is_called(gallery):
    assert set(gallery.results) == {*KINDS, "plotly_figure"}


def test_a_client_gets_what_the_gallery_shows(gallery):
    results = {tool: result for tool, result in gallery.results.items() if tool in KINDS}
    assert {tool for tool, result in results.items() if result.is_error} == {"file_elsewhere"}
    assert {tool: kinds(result) for tool, result in results.items()} == {
        tool: kinds for tool, kinds in KINDS.items() if tool in results
    }
    unlike = {
        tool: text_of(result)
        for tool, result in results.items()
        if SAYS.get(tool, "") not in text_of(result)
    }
    assert unlike == {}


def test_pictures_can_be_opened_and_are_within_the_budget(gallery):
    pil = pytest.importorskip("PIL.Image")
    pictures = [
        block
        for result in gallery.results.values()
        for block in result.content
        if block.type == PICTURE
    ]
    assert len(pictures) > 15
    for block in pictures:
        data = base64.b64decode(block.data)
        assert len(data) <= 2**20
        with pil.open(io.BytesIO(data)) as picture:
            assert pil.MIME[picture.format] == block.mime_type
            assert max(picture.size) <= 1_568


def test_the_whole_of_a_long_table_can_be_read_as_csv_and_parquet(gallery):
    from pyarrow import parquet  # noqa: PLC0415

    csv, packed = links_of(gallery.results["long_frame"])
    lines = gallery.read[csv.uri].text.splitlines()
    assert len(lines) == 1_462
    assert lines[0] == "date,precipitation,temp_max,temp_min,wind,weather"
    table = parquet.read_table(io.BytesIO(base64.b64decode(gallery.read[packed.uri].blob)))
    assert table.shape == (1_461, 6)


def test_data_is_sent_where_the_author_says_so(gallery):
    results = gallery.results
    for tool, data in DATA.items():
        assert results[tool].structured_content == data
    rows = results["rows"].structured_content["result"]
    assert [row["weather"] for row in rows] == ["drizzle", "rain"]
    with_data = {name for name, result in results.items() if result.structured_content is not None}
    assert with_data == {*DATA, "rows"}


def shown_in_cell(kernel, tool):
    """Return the text that `%mcp call` shows, without spaces, and how many pictures it shows."""
    output = kernel.ok(f"%mcp call {tool}")
    pictures = sum(any(kind.startswith("image/") for kind in data) for data in output.displays)
    tables = [data["text/plain"] for data in output.displays if "text/html" in data]
    return "".join("".join([output.stdout, *tables]).split()), pictures


def test_a_client_gets_what_the_call_in_a_cell_shows(home):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with live_kernel(home) as kernel:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                kernel.run(cell.source)
        with Link(record_of(kernel)) as link:
            for tool in sorted(set(tools_of(kernel)) - ONCE):
                blocks = link.call(tool).content  # first: the call imports what it needs
                printed, pictures = shown_in_cell(kernel, tool)
                assert pictures == sum(isinstance(block, Image) for block in blocks), tool
                for block in blocks:
                    if isinstance(block, Text):
                        assert "".join(block.text.split()) in printed, tool
