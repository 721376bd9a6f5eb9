"""Parses the line of ``%%mcp_tool`` and ``%%mcp_prompt``: names or a signature, and options.

Runs on the kernel's main thread, inside the user's cell. Pure. Names and options may come in any
order. Each option is a field of `ToolOptions`; options with Python values (an executor,
``meta``) exist only as keywords of ``@mcp_tool``.
"""

import ast
import io
import re
import shlex
import tokenize
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import MagicArgumentParser
from msgspec import Struct, structs

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.options import OPTION_NAMES, OPTION_TYPES, ToolOptions
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number, not {text!r}") from None


def _read_whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a whole number, not {text!r}") from None


class _Either(Action):
    """Stores its constant, unless its opposite has been stored already."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        _values: Any,
        _option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) not in (None, self.const):
            both = [
                f"`{word}`"
                for word, keywords in _OPTIONS.items()
                if keywords.get("dest", word.removeprefix("--")) == self.dest
            ]
            parser.error(f"{' and '.join(both)} contradict each other: remove one of them")
        setattr(namespace, self.dest, self.const)


_FLAGS = ("store_true", "store_false", _Either)
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--name": {},
    "--title": {},
    "--description": {},
    "--icon": {"action": "append", "dest": "icons"},
    "--read-only": {"action": "store_true", "default": None},
    "--destructive": {"action": _Either, "const": True},
    "--non-destructive": {"action": _Either, "const": False, "dest": "destructive"},
    "--idempotent": {"action": "store_true", "default": None},
    "--closed-world": {"action": "store_false", "default": None, "dest": "open_world"},
    "--confirm": {"action": "store_true"},
    "--requires": {"action": "append"},
    "--complete": {"action": "append"},
    "--example": {"action": "append", "dest": "examples"},
    "--priority": {"type": _read_number, "default": 0},
    "--related": {"default": ""},
    "--tag": {"action": "append", "dest": "tags"},
    "--cache": {},
    "--output-schema": {"action": "store_true"},
    "--flatten": {"action": "store_true"},
    "--ui": {"nargs": "?", "const": True},
    "--no-ui": {"action": "store_false", "default": None, "dest": "ui"},
    "--allow": {"action": "append"},
    "--run": {"default": "main"},
    "--timeout": {},
    "--task": {"action": _Either, "const": True},
    "--task-only": {"action": _Either, "const": "only", "dest": "task"},
    "--max-concurrency": {"type": _read_whole_number},
    "--errors": {},
    "--mime-type": {},
    "--prefix": {},
}
"""The options by their words, each as keywords of argparse's `add_argument`."""
_ONE_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_BEFORE_PARENTHESIS = re.compile(r"[^\s()=\"']+[ \t]*\(")
_ARGPARSE_ERROR = re.compile(r"argument (\S+?): (.*)", re.DOTALL)


class Signature(Struct, frozen=True, kw_only=True):
    """``plot_city(city: str = "Seattle") -> Figure`` on the line of ``%%mcp_tool``."""

    name: str
    """The text before the parenthesis; not checked."""
    rest: str
    """From the parenthesis to the end of the return annotation; may span several lines."""
    column: int
    """Characters before the name on the line."""


class Line(Struct, frozen=True, kw_only=True):
    """The line of a magic in its parts, and the cell below it."""

    kind: messages.Kind
    """What the magic declares."""
    options: Namespace
    names: tuple[str, ...]
    """Words that are not options."""
    signature: Signature | None
    head: str
    """The line, including all lines that its signature spans."""
    body: str
    """The rest of the cell."""

    @property
    def prefix(self) -> str | None:
        """The prefix of the names of an object's tools, if the line has one."""
        return getattr(self.options, "prefix", None)


def read_line(
    parser: ArgumentParser,
    line: str,
    cell: str | None,
    expand: Callable[[str], str],
    kind: messages.Kind = "tool",
) -> Line:
    """Parse the line of a magic.

    Args:
        parser: From `build_parser`.
        line: The text after the magic's name.
        cell: The lines below; None for a line magic, which has no signature.
        expand: Expands the notebook's variables in options, as IPython does for all magics.
        kind: What the magic declares.

    Raises:
        DefinitionError: An option does not exist or cannot have that value, or the signature is
            not closed.
    """
    signature, head, body, before, after = None, line, cell or "", line, ""
    start = None if cell is None else _find_signature(line)
    if start is not None:
        text = f"{line}\n{cell}"
        end = start + _measure_signature(text[start:])
        name, _, rest = text[start:end].partition("(")
        signature = Signature(name=name.strip(), rest=f"({rest}".rstrip(), column=start)
        last, _, body = text[end:].partition("\n")
        head, before, after = text[:end] + last, line[:start], last
    words = list(_split(expand(before))) + list(_split(expand(after)))
    try:
        options = parser.parse_args(_join_values(words, kind))
    except UsageError as error:
        raise DefinitionError(_reword(str(error))) from None
    names = tuple(options.functions)
    return Line(kind=kind, options=options, names=names, signature=signature, head=head, body=body)


def build_parser(kind: messages.Kind = "tool") -> ArgumentParser:
    """Return a parser of names and of the options of a kind, which raises UsageError."""
    parser: ArgumentParser = MagicArgumentParser()
    parser.add_argument("functions", nargs="*")
    for word, keywords in _OPTIONS.items():
        if _is_option_of(word, kind):
            parser.add_argument(word, **keywords)
    return parser


def _is_option_of(word: str, kind: messages.Kind) -> bool:
    field = str(_OPTIONS[word].get("dest", word.removeprefix("--").replace("-", "_")))
    if word == "--prefix":
        return kind == "tool"
    return field in OPTION_NAMES[kind]


def list_option_words(kind: messages.Kind = "tool") -> dict[str, bool]:
    """Return the options as written on a magic's line, each with whether it needs a value."""
    return {
        word: keywords.get("action") not in _FLAGS and not _has_optional_value(word)
        for word, keywords in _OPTIONS.items()
        if _is_option_of(word, kind)
    }


def build_options(namespace: Namespace, kind: messages.Kind = "tool") -> ToolOptions:
    """Return the options of a parsed line."""
    values: Any = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(namespace).items()
        if name not in ("functions", "prefix") and value is not None
    }
    values["related"] = tuple(values.get("related", "").replace(",", " ").split())
    values["allow"] = split_hosts(values.get("allow", ()))
    for name in ("tags", "requires"):
        values[name] = split_words(values.get(name))
    values["examples"] = tuple(map(_read_example, values.get("examples", ())))
    if kind != "tool":
        values["complete"] = dict(map(_read_completion, values.get("complete", ())))
    return OPTION_TYPES[kind](**values)


def _read_example(text: str) -> dict[str, Any]:
    """Return the arguments of an example, written as in a call: ``year=2015, city="Bern"``."""
    arguments = None
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        call = ast.parse(f"dict({text})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            arguments = {each.arg: _read_literal(each.value) for each in call.keywords}
    if arguments is None or None in arguments:  # None: of a dict with two stars
        raise DefinitionError(
            "`--example` takes arguments as in a call, like `--example year=2015` or "
            f"`--example 'year=2015, city=\"Bern\"'`, not {text!r}."
        )
    return {str(name): value for name, value in arguments.items()}


def _read_literal(node: ast.expr) -> Any:
    """Return the value of a literal; a name stands for itself."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _read_completion(words: str) -> tuple[str, str]:
    """Return a parameter, and the name of what its values come from."""
    parameter, equals, source = words.partition("=")
    if not equals:
        raise DefinitionError(
            f"`--complete` takes a parameter and the name of something in the notebook, like "
            f"`--complete column=df.columns`, not {words!r}."
        )
    return parameter, source


def read_resource_line(
    parser: ArgumentParser, line: str, cell: str, expand: Callable[[str], str]
) -> tuple[str, Line]:
    """Return the URI on the line of ``%%mcp_resource``, and the line's other parts.

    Args:
        parser: From `build_parser`.
        line: The text after the magic's name.
        cell: The lines below.
        expand: Expands the notebook's variables in options, but not in the URI.

    Raises:
        DefinitionError: As `read_line`, or the line does not begin with a URI.
    """
    uri, rest = (*line.split(None, 1), "", "")[:2]
    if not uri or uri.startswith("-"):
        raise DefinitionError(
            "Begin the line with the resource's URI: `%%mcp_resource data://orders`, or with a "
            "variable, `%%mcp_resource frame://{name}`."
        )
    parsed = read_line(parser, rest, None, expand, "resource")
    if parsed.names:
        words = " ".join(parsed.names)
        raise DefinitionError(
            f"`%%mcp_resource` takes one URI and options, not {words!r}: remove it, or quote "
            "values that contain spaces."
        )
    return uri, structs.replace(parsed, head=line, body=cell)


def build_skill_parser() -> ArgumentParser:
    """Return a parser of the line of ``%%mcp_skill``, which raises UsageError."""
    parser: ArgumentParser = MagicArgumentParser()
    parser.add_argument("functions", nargs="*")
    for word in ("--description", "--tag"):
        parser.add_argument(word, **_OPTIONS[word])
    return parser


def split_words(items: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of a repeated option, each of which may be several words with commas."""
    # Commas only: a tag may have several words.
    words = [word.strip() for item in items or () for word in item.split(",")]
    return tuple(word for word in words if word)


def read_view_line(line: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the hosts on the line of ``%%mcp_view``.

    Args:
        line: The text after the magic's name: ``map --allow tiles.example.org``.

    Raises:
        DefinitionError: The line is something else.
    """
    name, *words = list(_split(line)) or [""]
    if not name or name.startswith("-"):
        raise DefinitionError(f"{_VIEW_LINE}: it begins with the view's name.")
    hosts, is_allowed = [], False
    for word in words:
        option, equals, value = word.partition("=")
        if option == "--allow":
            is_allowed = True
            hosts += [value] if equals else []
        elif is_allowed and not word.startswith("-"):
            hosts.append(word)
        else:
            raise DefinitionError(f"{_VIEW_LINE}, without {word!r}.")
    if is_allowed and not hosts:
        raise DefinitionError("`--allow` needs a value: write it after the option.")
    return name, split_hosts(hosts)


def split_hosts(words: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts in words of which each may be several hosts with commas."""
    hosts = (host.strip() for word in words for host in word.split(","))
    return tuple(host for host in hosts if host)


_VIEW_LINE = "Write `%%mcp_view NAME [--allow HOST ...]`"


# -- the signature ---------------------------------------------------------------------------------


def _find_signature(line: str) -> int | None:
    """Return the position of the first word with a parenthesis that is not an option's value."""
    takes_value = list_option_words()
    value_follows = False
    for word in _ONE_WORD.finditer(line):
        if value_follows:
            value_follows = False
        elif word[0].startswith("-"):
            value_follows = takes_value.get(word[0], False)
        elif _BEFORE_PARENTHESIS.match(line, word.start()):
            return word.start()
    return None


def _measure_signature(text: str) -> int:
    """Return the length of a signature at the start of a string.

    It ends with its closing parenthesis or with its return annotation.

    Raises:
        DefinitionError: Its parenthesis is not closed.
    """
    lines = text.splitlines(keepends=True)
    depth, end, has_annotation = 0, 0, False
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if end and not has_annotation and token.string != "->":
                break
            if end and depth == 0 and _ends_annotation(token, lines):
                break
            has_annotation = has_annotation or (token.string == "->" and depth == 0 and end > 0)
            depth += (token.string in _OPENING) - (token.string in _CLOSING)
            if (token.type == tokenize.OP and token.string == ")" and depth == 0) or has_annotation:
                end = sum(map(len, lines[: token.end[0] - 1])) + token.end[1]
    except (tokenize.TokenError, SyntaxError):
        # What follows the signature need not be Python; only an open parenthesis is an error.
        pass
    if not end:
        raise DefinitionError(
            f"The signature {lines[0].strip()!r} does not end: close its parenthesis."
        )
    return end


_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


def _ends_annotation(token: tokenize.TokenInfo, lines: Sequence[str]) -> bool:
    row, column = token.start
    return token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) or (
        lines[row - 1].startswith("--", column) and lines[row - 1][column - 1].isspace()
    )


# -- the options -----------------------------------------------------------------------------------


def _split(text: str) -> Iterator[str]:
    words = shlex.shlex(text, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = words.escape = ""  # paths on Windows are full of backslashes
    try:
        yield from words
    except ValueError:
        raise DefinitionError(
            f"A quote in {text.strip()!r} is not closed: put a value that contains a quote between "
            "quotes of the other kind."
        ) from None


def _has_optional_value(option: str) -> bool:
    """Return whether an option takes the next word as its value unless that is another option."""
    return option in _OPTIONS and _OPTIONS[option].get("nargs") == "?"


def _join_values(words: Sequence[str], kind: messages.Kind) -> list[str]:
    """Join each option with its value, which may begin with a dash."""
    takes_value = list_option_words(kind)
    joined: list[str] = []
    rest = deque(words)
    while rest:
        word = rest.popleft()
        option, equals, _ = word.partition("=")
        if option.startswith("-") and option not in takes_value:
            raise DefinitionError(_explain_unknown(option, takes_value, kind))
        if not equals and takes_value.get(option):
            value = rest.popleft() if rest else None
            if value is None or value.partition("=")[0] in takes_value:
                raise DefinitionError(f"`{option}` needs a value: write it after the option.")
            word = f"{option}={value}"
        elif not equals and rest and _has_optional_value(word) and not rest[0].startswith("-"):
            word = f"{option}={rest.popleft()}"
        joined.append(word)
    return joined


def _explain_unknown(option: str, known: Iterable[str], kind: messages.Kind) -> str:
    """Return why a line cannot have an option."""
    if option in _OPTIONS:
        owner = next(each for each in OPTION_NAMES if _is_option_of(option, each))
        return f"`{option}` is an option of {owner}s, not of {kind}s: remove it."
    keyword = option.lstrip("-").replace("-", "_")
    if keyword in {item.name for item in fields(ToolOptions)}:
        hint = f"It can only be set in Python: `@mcp_{kind}({keyword}=...)`."
    else:
        meant = suggest(option, known)
        hint = f"Did you mean `{meant}`?" if meant else f"`%mcp_{kind}?` lists all options."
    return f"There is no option `{option}`. {hint}"


def _reword(message: str) -> str:
    """Return an error message of argparse as a sentence."""
    match = _ARGPARSE_ERROR.fullmatch(message)
    if match is None:
        return f"{message[:1].upper()}{message[1:]}."
    option, reason = match.groups()
    if reason.startswith("ignored explicit argument"):
        reason = "takes no value: write the option alone"
    return f"`{option}` {reason}."
