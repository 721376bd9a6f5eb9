"""Reads from a notebook's source which tools and prompts it will offer, before it has run.

Pure, in any thread of the bridge or the command. The kernel decides what becomes a tool (its
`magic_line` and `cells` read the same lines), and its list replaces this one. Only names,
descriptions, the names of parameters, and the options by which callers are permitted to see a tool
are published. A schema without types accepts all arguments; the kernel checks them. Source that
cannot be parsed offers nothing.
"""

import ast
import re
import shlex
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert, field

from mcp_notebook import meta_keys
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import replace_surrogates

_Declaration: TypeAlias = "tuple[_Function, Any, dict[str, Any]]"
"""A function, the kind of what it becomes, and the options on its magic's line."""
MAX_DESCRIPTION = 2_000
"""Characters of a description."""
_MAX_LINE = 10_000
"""Characters that are read of a magic's line, and of a signature, whose end is one of its first 200
closing parentheses."""
_CELL_MAGIC = re.compile(r"%%mcp_(tool|prompt)(?!\S)(.*)")
_LINE_MAGIC = re.compile(r"^[ \t]*%mcp_(tool|prompt)[ \t](.*)$", re.MULTILINE)
_DECORATOR = re.compile(r"(?:\w+\.)*mcp_(tool|prompt)")
_ONE_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_NOT_SENT = re.compile(r"\b(?:Context|Hidden)\b")
"""Type hints of parameters that clients do not send."""
_CALL = re.compile(r"([^\W\d]\w*)[ \t]*\(")
_NOT_PYTHON = re.compile(
    r"^([ \t]*+)(?:%%?\w.*|[!?].*|.*\?|[\w, ]++=[ \t]*[%!]\S.*)$", re.MULTILINE
)


class _Options(Struct, frozen=True):
    """The options that are published."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None
    title: str | None = None
    description: str | None = None
    read_only: bool | None = None
    tags: list[str] = field(default_factory=list)


class _Function(Struct, frozen=True):
    """A function of the notebook, as far as its source tells."""

    name: str
    parameters: Sequence[str] = ()
    description: str = ""
    is_defined: bool = True
    """Whether a ``def`` does."""
    declares: Any = None
    """What its decorator declares; None without one."""
    options: dict[str, Any] = {}
    """The decorator's keywords."""


def list_source_tools(cells: Sequence[tuple[str, Any]]) -> list[messages.ToolInfo]:
    """Return the tools and prompts that cells declare, in order.

    Args:
        cells: The source of each code cell, and its tags.
    """
    if not any("mcp_tool" in source or "mcp_prompt" in source for source, _ in cells):
        return []
    known: dict[str, _Function] = {}
    found: dict[tuple[str, str], messages.ToolInfo] = {}
    for source, tags in cells:
        if isinstance(tags, list) and "skip-execution" in tags:
            continue
        with suppress(RecursionError):
            for declaration in _read_cell(textwrap.dedent(source).strip("\n"), known):
                with suppress(ValidationError):  # the kernel refuses them
                    tool = _make_tool(*declaration)
                    found[tool.kind, tool.name] = tool
    return list(found.values())


def _read_cell(source: str, known: dict[str, _Function]) -> Iterator[_Declaration]:
    """Yield what a cell declares; its functions are added to the known ones."""
    head, _, body = source.partition("\n")
    if (magic := _CELL_MAGIC.fullmatch(head)) is not None:
        functions, line = _read_magic_cell(magic[2], body)
        _, options = _read_words(line)
        public = (each for each in functions if each.is_defined and each.name[0] != "_")
        yield from ((each, magic[1], options) for each in public)
        known |= {each.name: each for each in functions}
    elif not head.startswith("%%"):
        functions = list(_list_functions(source))
        yield from ((each, each.declares, {}) for each in functions if each.declares)
        known |= {each.name: each for each in functions}
        yield from _read_line_magics(source, known)


def _read_magic_cell(line: str, body: str) -> tuple[list[_Function], str]:
    """Return the functions of a cell under a magic, and the magic's line without a signature."""
    starts = (_CALL.match(line, word.start()) for word in _ONE_WORD.finditer(line))
    if (start := next(filter(None, starts), None)) is None:
        return list(_list_functions(body)), line
    text = f"{line[start.end() - 1 :]}\n{body}"
    for parenthesis in islice(re.finditer(r"\)", text[:_MAX_LINE]), 200):
        end = parenthesis.end()
        match _parse(f"def _{text[:end]}: ..."):
            case ast.Module(body=[ast.FunctionDef(args=arguments)]):
                after, _, rest = text[end:].partition("\n")
                function = _Function(start[1], _list_parameters(arguments), _describe_body(rest))
                return [function], f"{line[: start.start()]} {after}"
    return [], ""


def _read_line_magics(source: str, known: Mapping[str, _Function]) -> Iterator[_Declaration]:
    quoted = {
        line
        for node in ast.walk(parse_cell(source))
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(node.end_lineno, int)
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }
    for magic in _LINE_MAGIC.finditer(source):
        if source.count("\n", 0, magic.start()) + 1 in quoted:  # in a string of several lines
            continue
        words, options = _read_words(magic[2])
        for word in " ".join(words).replace(",", " ").split():
            name = word.rpartition(".")[2]
            # An attribute probably is a function; a variable can be anything.
            if word in known or (name != word and name.isidentifier()):
                yield known.get(word) or _Function(name), magic[1], options


def _make_tool(function: _Function, kind: messages.Kind, line: dict[str, Any]) -> messages.ToolInfo:
    options = convert(function.options | line, _Options)
    properties: dict[str, Any] = {name: {} for name in function.parameters}
    text = options.description or function.description
    tags = [replace_surrogates(tag) for tag in options.tags]
    return messages.ToolInfo(
        name=options.name or function.name,
        title=options.title and replace_surrogates(options.title),
        description=replace_surrogates(text)[:MAX_DESCRIPTION],
        input_schema={"type": "object", "properties": properties, "additionalProperties": True},
        annotations={"readOnlyHint": True} if options.read_only else None,
        meta={meta_keys.TAGS: tags} if tags else None,
        kind=kind,
    )


# -- the words on a magic's line -------------------------------------------------------------------


def _read_words(line: str) -> tuple[list[str], dict[str, Any]]:
    """Return the words on a magic's line that are no options, and the options that matter here."""
    lexer = shlex.shlex(line[:_MAX_LINE], posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    options: dict[str, Any] = {}
    others: list[str] = []
    with suppress(ValueError):  # an open quote: the kernel refuses the line
        for word in lexer:
            option, equals, value = word.partition("=")
            if not option.startswith("-"):
                others.append(word)
            elif option == "--read-only":
                options["read_only"] = True
            elif option in ("--name", "--title", "--description"):
                options[option[2:]] = value if equals else next(lexer, "")
            elif option == "--tag":
                words = (value if equals else next(lexer, "")).split(",")
                options.setdefault("tags", []).extend(filter(None, map(str.strip, words)))
    return others, options


def _describe_body(body: str) -> str:
    """Return what a cell that is the body of a tool says of itself: a string, or a comment."""
    if text := ast.get_docstring(parse_cell(body)):
        return text
    lines = map(str.strip, body.strip().splitlines())
    comment = takewhile(lambda line: line.startswith("#"), lines)
    return "\n".join(line.lstrip("#").strip() for line in comment)


# -- Python ----------------------------------------------------------------------------------------


def _parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, when the cell runs
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # too deeply nested
        return None


def parse_cell(source: str) -> ast.Module:
    """Return a cell's code without its magics; an empty module if it is not Python."""
    source = textwrap.dedent(source)
    return _parse(source) or _parse(_NOT_PYTHON.sub(r"\1pass", source)) or ast.Module([], [])


def _list_functions(source: str) -> Iterator[_Function]:
    """Yield the functions that a cell defines, or imports by name."""
    for node in parse_cell(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                decorated = filter(None, map(_read_decorator, node.decorator_list))
                declares, options = next(decorated, (None, {}))
                text, parameters = ast.get_docstring(node) or "", _list_parameters(node.args)
                yield _Function(name, parameters, text, declares=declares, options=options)
            case ast.ImportFrom(names=names):
                for each in names:
                    yield _Function(each.asname or each.name, is_defined=False)


def _read_decorator(node: ast.expr) -> tuple[str, dict[str, Any]] | None:
    """Return what ``@mcp_tool(title="Sum")`` declares, and its options; None for another one."""
    target, keywords = (node.func, node.keywords) if isinstance(node, ast.Call) else (node, [])
    match = _DECORATOR.fullmatch(ast.unparse(target))
    options = {}
    for keyword in keywords if match else ():
        with suppress(ValueError, TypeError):  # no literal
            options[keyword.arg or ""] = ast.literal_eval(keyword.value)
    return match and (match[1], options)


def _list_parameters(arguments: ast.arguments) -> tuple[str, ...]:
    """Return the parameters that clients may set; some refuse names that are not ASCII."""
    every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs)
    return tuple(
        each.arg
        for each in every
        if each is not None
        and each.arg.isascii()
        and len(each.arg) <= 64  # noqa: PLR2004 - as in tool names
        and not (each.annotation and _NOT_SENT.search(ast.unparse(each.annotation)))
    )
