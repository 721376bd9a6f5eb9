"""The options on the line of ``%%mcp_tool`` and ``%mcp_tool``: their words, and what they mean.

Runs on the kernel's main thread, inside the user's cell. Each option is a field of `ToolOptions`
(`kernel.options`), which says more about it and is checked there; only what a line cannot say well
(an executor, ``meta``, examples) is left to ``@mcp_tool``.
"""

from argparse import Action, ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from IPython.core.magic_arguments import argument

from mcp_notebook.kernel.options import ToolOptions

_F = TypeVar("_F", bound=Callable[..., Any])


class _Either(Action):
    """Stores its constant, and refuses to do so after its opposite did."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        _values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) not in (None, self.const):
            parser.error(f"`{option_string}` and its opposite are both said: leave one out.")
        setattr(namespace, self.dest, self.const)


_OPTIONS: Sequence[Callable[[Any], Any]] = (
    argument("--name", help="Name of the tool for clients, in place of the function's."),
    argument("--title", help="Name of the tool for people."),
    argument("--description", help="What the tool does, in place of the docstring's text."),
    argument(
        "--icon",
        action="append",
        dest="icons",
        metavar="ICON",
        help="A picture for the tool: an https address, or a file. May be given several times.",
    ),
    argument("--read-only", action="store_true", default=None, help="It changes nothing."),
    argument("--destructive", action=_Either, const=True, help="It may destroy, not only add."),
    argument(
        "--non-destructive",
        action=_Either,
        const=False,
        dest="destructive",
        help="It only adds.",
    ),
    argument(
        "--idempotent",
        action="store_true",
        default=None,
        help="A second call with the same arguments changes nothing more.",
    ),
    argument(
        "--closed-world",
        action="store_false",
        default=None,
        dest="open_world",
        help="It deals with the notebook only, not with the web, say.",
    ),
    argument("--priority", type=float, default=0, help="Higher ones are listed first (0)."),
    argument(
        "--related",
        default="",
        metavar="A,B",
        help="Tools that a model should know of when it reads of this one.",
    ),
    argument(
        "--tag",
        action="append",
        dest="tags",
        metavar="TAG",
        help="A word to group tools by. May be given several times.",
    ),
    argument(
        "--cache",
        metavar="TIME",
        help="How long a result is given again for the same arguments (60s, 5min), of read-only "
        "tools; ephemeral: never, and clients are told so.",
    ),
    argument(
        "--output-schema",
        action=BooleanOptionalAction,
        default=None,
        help="Results are also data by the return annotation; or never.",
    ),
    argument(
        "--no-validate-output",
        action="store_false",
        dest="validate_output",
        default=True,
        help="Do not compare results with the output schema.",
    ),
    argument(
        "--flatten",
        action="store_true",
        help="The fields of the function's one parameter, a model, are the tool's arguments.",
    ),
    argument(
        "--run",
        default="main",
        help="main: between cells (the default). thread: in a thread of its own, also while a "
        "cell runs.",
    ),
    argument("--timeout", metavar="TIME", help="After which a call is stopped: 30s, 5min."),
    argument("--max-concurrency", type=int, help="Calls that may run at once; more of them wait."),
    argument("--logs", help="Log messages of this level and above become part of the result."),
)


def option_arguments(magic: _F) -> _F:
    """Give a magic all options; below ``@magic_arguments()``."""
    for option in reversed(_OPTIONS):
        magic = option(magic)
    return magic


def line_options(given: Namespace) -> ToolOptions:
    """Return what a parsed line says about a tool."""
    said: Any = {
        name: _plain(value)
        for name, value in vars(given).items()
        if name != "functions" and value is not None
    }
    said["related"] = tuple(said["related"].replace(",", " ").split())
    return ToolOptions(**said)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return _unquoted(value) if isinstance(value, str) else value


def _unquoted(value: str) -> str:
    # IPython's argument splitter keeps the quotes on some systems.
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
