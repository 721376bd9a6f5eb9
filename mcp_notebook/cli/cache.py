"""``mcp-notebook cache``: the schemas that kernels keep for their next start.

Runs in the process of the command; the work is the business of `cli.cache_commands`.
"""

from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command, Group
from mcp_notebook.cli.options import IgnoreErrors, TrustedOnly
from mcp_notebook.cli.runner import run_command
from mcp_notebook.settings.settings import Settings

cache = typer.Typer(
    cls=Group,
    help="Manage the cache of tool schemas, which makes notebooks start faster.",
    epilog="Kernels fill the cache by themselves; MCP_NOTEBOOK_SCHEMA_CACHE=0 turns it off. A "
    "schema is only used for the exact function that it was built from, so you need not clear the "
    "cache after a change.\n\nExample: mcp-notebook cache warm notebooks/weather.ipynb",
    no_args_is_help=True,
)


@cache.command(cls=Command, epilog="Example: mcp-notebook cache warm notebooks/weather.ipynb")
def warm(
    notebooks: Annotated[
        list[Path], typer.Argument(metavar="NOTEBOOK", help="Notebooks to run.", show_default=False)
    ],
    *,
    allow_errors: IgnoreErrors = False,
    trusted_only: TrustedOnly = False,
) -> None:
    """Run notebooks once, and cache the schemas of their tools for the next start."""
    settings = Settings.from_environment(
        allow_errors=allow_errors or None, trusted_only=trusted_only or None
    )
    from mcp_notebook.cli.cache_commands import warm_cache  # noqa: PLC0415

    run_command(warm_cache, settings, notebooks)


@cache.command(cls=Command, epilog="Example: mcp-notebook cache clear")
def clear() -> None:
    """Remove all cached schemas. The next start builds and caches them again."""
    settings = Settings.from_environment()
    from mcp_notebook.cli.cache_commands import clear_cache  # noqa: PLC0415

    run_command(clear_cache, settings)
