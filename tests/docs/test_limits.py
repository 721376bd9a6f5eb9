"""The page of limits: its figures are those of the code."""

from documents import page

from mcp_notebook.bridge.server.resources.resources import MAX_READ as MAX_RESOURCE
from mcp_notebook.bridge.transports.connections import ConnectionLimits
from mcp_notebook.bridge.transports.http_connection import MAX_HEAD, MAX_HEADERS
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.files import file_contents, returned_files
from mcp_notebook.kernel.safe.foreign_code import CONVERSION_SECONDS
from mcp_notebook.settings.settings import Settings

TEXT = page("operate/limits.md").text
SETTINGS = Settings.from_environment({})
BUDGET = Budget()


def check_page(*said):
    """Fail if the page does not say all of these."""
    assert [words for words in said if words not in TEXT] == []


def mebibytes(size):
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size // 2**10} KiB"


def test_the_figures_for_results_and_calls_are_those_of_the_code():
    check_page(
        f"a picture {mebibytes(file_contents.MAX_IMAGE)}, HTML and SVG "
        f"{mebibytes(file_contents.MAX_CONVERTED)}, {returned_files.MAX_FILES} paths of a list",
        f"text | {SETTINGS.max_result_chars:,} characters |",
        f"{BUDGET.pictures}, of {BUDGET.picture_side:,} pixels on the longer side |",
        f"documents together | {mebibytes(BUDGET.result_bytes)}, because",
        f"a table | {BUDGET.table_rows} rows and {6 * BUDGET.table_rows} cells |",
        f"{mebibytes(SETTINGS.max_resource_bytes)} of memory (`max_resource_bytes`)",
        f"`resources/read` returns up to {mebibytes(MAX_RESOURCE)} of an original",
        f"Up to {SETTINGS.max_waiting_calls} calls run or wait in a kernel (`max_waiting_calls`)",
    )


def test_the_figures_for_connections_are_those_of_the_code():
    limits = ConnectionLimits()
    wait = f"{limits.progress_timeout:g}"
    check_page(
        f"headers | {mebibytes(MAX_HEAD)}, {MAX_HEADERS} headers |",
        f"request with a token | {limits.auth_timeout:g} seconds |",
        f"such connections | {limits.max_unauthenticated}, but",
        f"a partial request | {wait} seconds, and {wait} more for each 512 KiB",
        f"does not read | {wait} seconds without progress",
        f"except you | {limits.max_caller_connections}, but",
    )


def test_the_time_for_reprs_is_that_of_the_code():
    words = {5.0: "five"}
    assert f"may take {words[CONVERSION_SECONDS]} seconds together" in TEXT
