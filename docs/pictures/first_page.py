"""The picture of the first page: a notebook beside what an assistant gets from it.

Everything on it is real: the README's cells run in a kernel, the card is the one that they show,
and an MCP client connected to `mcp-notebook stdio` makes the call and gets the plot. Chromium,
where it is installed, turns the page into a PNG; the tests look at the page itself.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

from mcp import Client, StdioServerParameters
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).parents[2]
QUESTION = "Plot the rain in Seattle in 2015."
TOOL, ARGUMENTS = "plot_rain", {"year": 2015}
SIZE = (1180, 760)
"""Pixels of the page; the picture has twice as many."""
THEMES = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1f2328",
        "soft": "#57606a",
        "panel": "#f6f8fa",
        "line": "#d0d7de",
        "bubble": "#dbeafe",
        "code": "default",
    },
    "dark": {
        "paper": "#14181e",
        "ink": "#e6edf3",
        "soft": "#9198a1",
        "panel": "#21262d",
        "line": "#3d444d",
        "bubble": "#1f3a5f",
        "code": "github-dark",
    },
}
PAGE = """\
<!doctype html>
<html><head><meta charset="utf-8"><style>
* {{ box-sizing: border-box }}
body {{ margin: 0; padding: 10px; width: 1180px; color: {ink};
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif }}
main {{ display: flex; gap: 18px; align-items: stretch }}
section {{ background: {paper}; border: 1px solid {line}; border-radius: 10px; overflow: hidden }}
section > h2 {{ margin: 0; padding: 8px 16px; font-size: 14px; font-weight: 600; color: {soft};
  background: {panel}; border-bottom: 1px solid {line} }}
.notebook {{ flex: 0 0 630px }}
.assistant {{ flex: 1; display: flex; flex-direction: column }}
.inside {{ padding: 14px 16px }}
.cell {{ display: flex; gap: 10px; margin-bottom: 10px }}
.prompt {{ flex: 0 0 34px; padding-top: 7px; color: {soft};
  font: 12px "DejaVu Sans Mono", monospace; text-align: right }}
.source {{ flex: 1; min-width: 0; background: {panel}; border: 1px solid {line}; border-radius: 4px;
  padding: 6px 10px }}
pre {{ margin: 0; font: 12px/1.45 "DejaVu Sans Mono", monospace }}
.output {{ margin-left: 44px; font-size: 14px }}
.output code, .call code {{ font: 13px "DejaVu Sans Mono", monospace }}
.output td {{ padding: 1px 12px 1px 0 }}
.question {{ background: {bubble}; border-radius: 14px 14px 3px 14px; padding: 10px 14px;
  margin: 6px 0 22px auto; width: fit-content }}
.call {{ border: 1px solid {line}; border-left: 4px solid #f37726; border-radius: 4px;
  padding: 8px 12px; background: {panel} }}
.call small {{ display: block; color: {soft}; font-size: 12.5px }}
.result {{ margin: 14px 0 0; width: 100%; border-radius: 4px; border: 1px solid {line};
  display: block }}
.kind {{ color: {soft}; font-size: 12.5px; margin-top: 6px }}
{pygments}
</style></head><body><main>
<section class="notebook"><h2>Your notebook</h2><div class="inside">
{cells}
<div class="output">{card}</div>
</div></section>
<section class="assistant"><h2>Your assistant</h2><div class="inside">
<div class="question">{question}</div>
<div class="call"><small>Tool call</small><code>{call}</code></div>
<img class="result" src="data:{mime_type};base64,{data}" alt="">
<div class="kind">Result: 1 picture, {mime_type}, {width} &times; {height} pixels</div>
</div></section>
</main></body></html>
"""


@dataclass(frozen=True)
class Scene:
    """What really happened in the notebook and at the client."""

    cells: tuple[str, ...]
    card: str
    """HTML that the notebook shows below the last cell."""
    picture: bytes
    """What the client got."""
    mime_type: str


def play_scene() -> Scene:
    """Run the README's cells and call their tool as a client."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = tuple(re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))
    with tempfile.TemporaryDirectory() as home:  # hidden from the user's own clients
        return asyncio.run(_play(cells, home))


async def _play(cells: tuple[str, ...], home: str) -> Scene:
    env = os.environ | {"MCP_NOTEBOOK_HOME": home}
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=120)
    async with client.async_setup_kernel(env=env):
        for index, cell in enumerate(notebook.cells):
            await client.async_execute_cell(cell, index)
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "mcp_notebook", "stdio"], env=env
        )
        async with Client(server) as assistant:
            result = await assistant.call_tool(TOOL, ARGUMENTS)
    (output,) = notebook.cells[-1].outputs
    (block,) = result.content
    return Scene(cells, output.data["text/html"], b64decode(block.data), block.mime_type)


def compose_page(scene: Scene, theme: str) -> str:
    """Return the HTML page of a scene in one of the `THEMES`."""
    colors = THEMES[theme]
    formatter = HtmlFormatter(style=colors["code"], noclasses=False, nobackground=True)
    sources = [_highlight(source, formatter) for source in scene.cells]
    cells = "\n".join(
        f'<div class="cell"><div class="prompt">[{number}]</div>'
        f'<div class="source">{source}</div></div>'
        for number, source in enumerate(sources, 1)
    )
    arguments = ", ".join(f"{name}={value!r}" for name, value in ARGUMENTS.items())
    width, height = (int.from_bytes(scene.picture[at : at + 4], "big") for at in (16, 20))
    return PAGE.format(
        **{name: color for name, color in colors.items() if name != "code"},
        pygments=formatter.get_style_defs(".highlight"),
        cells=cells,
        card=scene.card,
        question=escape(QUESTION),
        call=escape(f"{TOOL}({arguments})"),
        mime_type=scene.mime_type,
        data=b64encode(scene.picture).decode("ascii"),
        width=width,
        height=height,
    )


def _highlight(source: str, formatter: HtmlFormatter) -> str:
    return highlight(source.strip(), PythonLexer(), formatter)


def find_browser() -> str | None:
    """Return the path of Chromium or Chrome; None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def photograph(page: str, browser: str) -> bytes:
    """Return the PNG of a page, cut to what it shows."""
    from PIL import Image  # noqa: PLC0415 - only where there is a browser

    with tempfile.TemporaryDirectory() as folder:
        html, png = Path(folder) / "page.html", Path(folder) / "page.png"
        html.write_text(page, encoding="utf-8")
        options = (
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--force-device-scale-factor=2", "--default-background-color=00000000"),
            *(f"--user-data-dir={folder}/profile", f"--window-size={SIZE[0]},{SIZE[1]}"),
        )
        command = [browser, *options, f"--screenshot={png}", html.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - ours
        image = Image.open(png).convert("RGBA")
    image = image.crop(image.getbbox()).quantize(256, method=Image.Quantize.FASTOCTREE)
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
