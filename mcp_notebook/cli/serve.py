"""``mcp-notebook serve``: its options. Without options, `__main__` starts the bridge directly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_notebook.cli.help import Command, format_examples
from mcp_notebook.cli.options import (
    OFFERING,
    RUNNING,
    Notebooks,
    Packages,
    list_served,
    read_settings,
    takes_options,
)
from mcp_notebook.cli.runner import run_http_bridge
from mcp_notebook.settings.settings import DEFAULT_PORT

_MAX_PORT = 65_535


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_PORT:
        raise typer.BadParameter(f"{text!r} is not a whole number from 0 to {_MAX_PORT}.")
    return int(text)


_LISTENING: Mapping[str, Any] = {
    "host": Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1)."),
    ],
    "port": Annotated[
        int | None,
        typer.Option(
            parser=_parse_port,
            metavar="NUMBER",
            help=f"Port to listen on (default: {DEFAULT_PORT}, or the next free port).",
        ),
    ],
    "certfile": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TLS certificate, as a PEM file."),
    ],
    "keyfile": Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key of the certificate.")
    ],
    "insecure": Annotated[
        bool, typer.Option("--insecure", help="Let other machines connect without encryption.")
    ],
    "token_file": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the bearer token, created if it does not exist (default: "
            "~/.mcp-notebook/token). MCP_NOTEBOOK_TOKEN sets the token itself.",
        ),
    ],
    "oauth_file": Annotated[
        Path | None,
        typer.Option(
            "--oauth-file",
            metavar="FILE",
            help="TOML file that admits users of an OAuth issuer or a JupyterHub.",
        ),
    ],
}
"""Where and how the bridge listens; by the names of the settings."""
_KERNELS: Mapping[str, Any] = {
    "replicas": Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Number of kernels that run each notebook and share its calls (default: 1), or "
            "`auto` for one per processor, as far as memory allows.",
        ),
    ],
    "watch": Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Run a notebook again in new kernels when it is saved with changed code. The new "
            "kernels take over once all cells have run; running calls finish on the old ones.",
        ),
    ],
}
"""How the kernels of the notebooks are kept."""

app = typer.Typer(add_completion=False)


@app.command(
    cls=Command,
    epilog=format_examples(
        "mcp-notebook serve",
        "mcp-notebook serve notebooks/weather.ipynb --watch",
        "mcp-notebook serve notebooks --meta-tools=only",
        "mcp-notebook serve --tools 'sales.*' --read-only",
    ),
)
@takes_options(_LISTENING, RUNNING, _KERNELS, OFFERING)
def serve(
    notebooks: Notebooks = None,
    *,
    package: Packages = None,
    background: Annotated[bool, typer.Option("--background", hidden=True)] = False,
    options: Mapping[str, Any],
) -> None:
    """Serve tools over HTTP."""
    if background and (notebooks or package):
        raise typer.BadParameter("The background bridge serves open notebooks: do not name any.")
    replicas = options["replicas"]
    if (replicas is not None or options["watch"]) and not (notebooks or package):
        option = "--watch" if replicas is None else f"--replicas {replicas}"
        raise typer.BadParameter(
            f"{option} needs a notebook: `mcp-notebook serve FILE.ipynb {option}`."
        )
    if replicas is not None and any(path.expanduser().is_dir() for path in notebooks or ()):
        raise typer.BadParameter(
            f"--replicas {replicas} is for notebooks that run all the time: name their files. Each "
            "notebook of a folder has one kernel, which starts when it is called."
        )
    settings = read_settings(**options)
    served = list_served(notebooks, package, settings)
    run_http_bridge(settings, served, background=background)
