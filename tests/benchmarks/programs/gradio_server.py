"""gradio's MCP server with the tools: ``python gradio_server.py TOOLS PORT``."""

import sys
import tempfile
from pathlib import Path

import gradio as gr
from same_tools import SIDE, add, fillers, length, png, table

picture = Path(tempfile.gettempdir()) / "picture_500kb.png"
picture.write_bytes(png(SIDE))


def picture_500kb() -> str:
    """Draw a picture of 500 KB."""
    return str(picture)


def table_1mb() -> list[dict]:
    """Return a table of 1 MB."""
    return table().to_dict("records")


with gr.Blocks() as app:
    shown = gr.Image(type="filepath", format="png")
    gr.Button().click(picture_500kb, None, shown, api_name="picture_500kb")
    for function in [add, length, table_1mb, *fillers(int(sys.argv[1]) - 4)]:
        gr.api(function, api_name=function.__name__)

app.launch(server_name="127.0.0.1", server_port=int(sys.argv[2]), mcp_server=True, quiet=True)
