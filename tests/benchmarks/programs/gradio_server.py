"""gradio's MCP server with the tools: ``python gradio_server.py TOOLS PORT``."""

import sys
import tempfile
from pathlib import Path

import gradio as gr
from same_tools import LARGE, SMALL, add, fillers, length, png, table

files = {}
for name, side in {"picture_1mb": LARGE, "picture_100kb": SMALL}.items():
    files[name] = Path(tempfile.gettempdir()) / f"{name}.png"
    files[name].write_bytes(png(side))


def picture_1mb() -> str:
    """Draw a picture of 1 MB."""
    return str(files["picture_1mb"])


def picture_100kb() -> str:
    """Draw a picture of 100 KB."""
    return str(files["picture_100kb"])


def table_1mb() -> list[dict]:
    """Return a table of 1 MB."""
    return table().to_dict("records")


with gr.Blocks() as app:
    for function in (picture_1mb, picture_100kb):
        shown = gr.Image(type="filepath", format="png")
        gr.Button().click(function, None, shown, api_name=function.__name__)
    for function in [add, length, table_1mb, *fillers(int(sys.argv[1]) - 5)]:
        gr.api(function, api_name=function.__name__)

app.launch(server_name="127.0.0.1", server_port=int(sys.argv[2]), mcp_server=True, quiet=True)
