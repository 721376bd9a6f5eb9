"""Shows the result of ``%mcp call`` in the notebook, block by block as a client gets it.

Runs on the kernel's main thread, inside the user's cell.
"""

from base64 import b64encode
from html import escape

from IPython.display import Audio as Player
from IPython.display import display

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.text.terminal import print_output


def show_result(result: Result) -> None:
    """Print the texts of a result, and display its images and audio."""
    if result.is_error:
        print_output("The client would get an error:")
    for block in result.content:
        _show_block(block)


def _show_block(block: ContentBlock) -> None:
    match block:
        case Text():
            print_output(block.text)
        case Image():
            display({block.mime_type: b64encode(block.data).decode()}, raw=True)
        case ResourceLink():
            print_output(f"{block.about}: {block.uri}")
        case Audio():
            player = Player(data=block.data)
            # It guesses only those of files, and writes them into its HTML as they are.
            player.mimetype = escape(block.mime_type)
            display(player)
        case Resource(data=str(text)):
            print_output(f"{block.uri} ({block.mime_type}):\n{text}")
        case Resource():
            print_output(f"{block.uri} ({block.mime_type}, {len(block.data):,} bytes)")
