"""The ``mcp-notebook token`` commands: argv -> one call of `cli.token_commands`.

Runs in the process of the command.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mcp_notebook.cli.help import Command, Group
from mcp_notebook.cli.options import ReadOnly, Tags, Tools
from mcp_notebook.settings.settings import Settings

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_LONGEST = 3_650 * 86_400

token = typer.Typer(
    cls=Group,
    help="Manage the tokens of those who may use your tools over HTTP, each with its own rights.",
    epilog="A running bridge follows at once. Your own token, which may do everything, is another "
    "one: `mcp-notebook serve` says where it is.\n\n"
    "Example: mcp-notebook token add ci --tools 'sales.*' --read-only --expires 7d",
    no_args_is_help=True,
)


def _parse_duration(text: str) -> float:
    match = re.fullmatch(r"([1-9]\d{0,6})([mhdw])", text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else _LONGEST + 1
    if seconds > _LONGEST:
        raise typer.BadParameter(
            f"{text!r} is not a time of at most ten years, such as 30m, 12h, 7d or 4w."
        )
    return seconds


def _complete_name(incomplete: str) -> list[str]:
    from mcp_notebook.cli.token_commands import list_names  # noqa: PLC0415 - only if asked

    names = list_names(Settings.from_environment())
    return [name for name in names if name.startswith(incomplete)]


def _split(context: typer.Context, option: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return what an option names. One that names nothing must not mean everything."""
    words = tuple(word.strip() for text in texts or () for word in text.split(","))
    if not all(words):
        context.fail(f"{option} is empty.")
    return words


_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The token's name.", autocompletion=_complete_name),
]
_Expires = Annotated[
    float | None,
    typer.Option(
        parser=_parse_duration, metavar="TIME", help="How long it is valid: 30m, 12h, 7d or 4w."
    ),
]
_Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write it to this file, which only you can read, and do not show it."
    ),
]


@token.command(
    cls=Command, epilog="Example: mcp-notebook token add ci --tools 'sales.*' --expires 7d"
)
def add(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, for the list and the log.")],
    *,
    tools: Tools = None,
    tags: Tags = None,
    read_only: ReadOnly = False,
    exclusive: Annotated[
        bool,
        typer.Option(
            "--exclusive", help="Hide what --tools names from all other tokens but your own."
        ),
    ] = False,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Let it read the metrics (/metrics), and use no tool."),
    ] = False,
    expires: _Expires = None,
    save: _Save = None,
) -> None:
    """Add a token, and show it this one time. Without options, it may use all tools."""
    if exclusive and not tools:
        context.fail("--exclusive needs --tools.")
    if metrics and (tools or tags or read_only):
        context.fail("--metrics goes alone: such a token may use no tool.")
    from mcp_notebook.bridge.access.caller import Permissions  # noqa: PLC0415
    from mcp_notebook.cli.token_commands import add_token  # noqa: PLC0415

    permissions = Permissions(
        tools=_split(context, "--tools", tools),
        tags=frozenset(_split(context, "--tags", tags)),
        read_only=read_only,
    )
    add_token(
        Settings.from_environment(),
        name,
        permissions,
        seconds=expires,
        exclusive=exclusive,
        metrics=metrics,
        save=save,
    )


@token.command("list", cls=Command, epilog="Example: mcp-notebook token list --json")
def list_(
    *,
    json_: Annotated[
        bool, typer.Option("--json", help="Print them as a JSON array, for programs.")
    ] = False,
) -> None:
    """List the tokens, and what each may do. The tokens themselves are nowhere."""
    from mcp_notebook.cli.token_commands import list_tokens  # noqa: PLC0415

    list_tokens(Settings.from_environment(), as_json=json_)


@token.command(cls=Command, epilog="Example: mcp-notebook token remove ci")
def remove(name: _Name) -> None:
    """Remove a token. It is void at once: its open streams, sessions and calls end."""
    from mcp_notebook.cli.token_commands import remove_token  # noqa: PLC0415

    remove_token(Settings.from_environment(), name)


@token.command(cls=Command, epilog="Example: mcp-notebook token rotate ci --save ci.token")
def rotate(name: _Name, *, expires: _Expires = None, save: _Save = None) -> None:
    """Replace a token by a new one with the same rights, for as long. The old one is void."""
    from mcp_notebook.cli.token_commands import rotate_token  # noqa: PLC0415

    rotate_token(Settings.from_environment(), name, seconds=expires, save=save)
