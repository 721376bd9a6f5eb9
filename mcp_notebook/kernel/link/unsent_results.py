"""What a client is told in place of a result that cannot be sent.

Runs in the user's kernel, on any thread.
"""

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import FrameTooLarge


def make_failure(error: Exception) -> Result:
    """Return the result of a call whose own result could not be sent, for this reason."""
    text = f"The result could not be sent: {type(error).__name__}: {error}"
    if isinstance(error, FrameTooLarge):
        text = (
            "The tool has run, but its result is too large to be sent: its texts and data take "
            f"{error.size:,} bytes, and at most {error.most:,} are possible. Ask for less of it at "
            "a time. The tool's author can return a long text as a file (a `Path`), which becomes "
            "a link, or set a lower `max_result_chars`, beyond which texts are cut."
        )
    return Result([Text(text)], is_error=True)
