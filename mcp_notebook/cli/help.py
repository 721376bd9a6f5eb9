"""What all commands have in common: late imports, their help, and hints on unknown commands.

Runs in the process of the command.
"""

import shlex
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mcp_notebook.text.wording import suggest

META_TOOLS_OPTION = "--meta-tools"
"""The one option whose value is optional: ``--meta-tools``, ``--meta-tools=only``."""

_ELSEWHERE = {
    "status": "`mcp-notebook list` shows the tools and calls of open notebooks, and `mcp-notebook "
    "doctor` what is wrong. In a notebook, run `%mcp status`.",
    "log": "`mcp-notebook audit` shows who called what. In a notebook, run `%mcp log`.",
}
"""Verbs of ``%mcp`` that have another name here."""


def format_examples(*lines: str) -> str:
    """Return command lines as the end of a command's help."""
    return "\n".join(["Examples:", *lines])


def _hide_types(parameters: list[Any]) -> list[Any]:
    """Keep typer from adding Python's types to help: ``<bool>`` to flags, ``<list[Path]>``."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) or parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: ""  # noqa: ARG005 - typer names it
    return parameters


class Group(TyperGroup):
    """A group of commands that suggests a command for an unknown one."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters for the help."""
        return _hide_types(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first argument, and the arguments for it."""
        word = args[0]
        if not (word in self.commands or word.startswith("-") or ctx.resilient_parsing):
            ctx.fail(f"No such command {word!r}. {self._suggest(ctx, word)}")
        return super().resolve_command(ctx, args)

    def _suggest(self, ctx: Any, word: str) -> str:
        if any(f"--{word}" in parameter.opts for parameter in self.get_params(ctx)):
            return f"Write `{ctx.command_path} --{word}`."
        if word.endswith(".ipynb") and "serve" in self.commands:
            return f"To serve this notebook, write `{ctx.command_path} serve {shlex.quote(word)}`."
        if word in _ELSEWHERE and "serve" in self.commands:
            return _ELSEWHERE[word]
        meant = suggest(word, self.commands)
        if meant:
            return f"Did you mean {meant!r}?"
        return f"The commands are {', '.join(self.commands)}."


class Command(TyperCommand):
    """A command whose help shows no types of flags, and no braces around required arguments.

    Paragraphs are joined to one line each; typer does that for the first one only.
    """

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002 - typer's name
        paragraphs = (help or "").split("\n\n")
        joined = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        super().__init__(*args, help=joined or None, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters for the help."""
        return _hide_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; the value of `META_TOOLS_OPTION` may be left out."""
        # The library's own optional values would take the notebook that follows the option.
        end = args.index("--") if "--" in args else len(args)
        words = [f"{word}=yes" if word == META_TOOLS_OPTION else word for word in args[:end]]
        return super().parse_args(ctx, words + args[end:])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


class LazyCommand(Command):
    """A command whose module is imported when it runs; until then, only a name and its help."""

    def load(self) -> Any:
        """Import the command's module, and return the command."""
        return typer.main.get_command(import_module(f"mcp_notebook.cli.{self.name}").app)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parse the arguments with the real command, which typer then runs."""
        return self.load().make_context(info_name, args, parent=parent, **extra)
