"""Reads from a notebook's source which tools and prompts it will offer, before it has run.

Pure, in any thread of the bridge or the command. The kernel decides what becomes a tool (its
`magic_line` and `cells` read the same lines), and its list replaces this one. What is published is
therefore what has to be right at once: names, descriptions, the names of parameters, and the
options by which callers are permitted to see a tool. A schema without types accepts all arguments;
the kernel checks them. Source that cannot be parsed offers nothing.
"""

import ast
import re
import shlex
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, field, structs

from mcp_notebook import meta_keys
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import replace_surrogates

MAX_DESCRIPTION = 2_000
"""Characters of a description."""
_MAX_PARENTHESES = 200
"""Closing parentheses that may be the end of a signature."""
_MAGIC = re.compile(r"%%mcp_(tool|prompt)(?![^\s])(.*)")
_LINE_MAGIC = re.compile(r"^[ \t]*%mcp_(tool|prompt)[ \t](.*)$", re.MULTILINE)
_PYTHON_MAGIC = re.compile(r"%%(time|timeit|capture|prun)\b.*")
"""Other cell magics whose cell is Python that runs in the notebook."""
_DECORATOR = re.compile(r"(?:\w+\.)*mcp_(tool|prompt)")
_ONE_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_CALL = re.compile(r"([^\W\d]\w*)[ \t]*\(")
_NOT_PYTHON = re.compile(r"^([ \t]*)(?:%%?\w.*|[!?].*|.*\?)$", re.MULTILINE)
_ASSIGNED_MAGIC = re.compile(r"=[ \t]*[%!]\S.*$", re.MULTILINE)
_TEXTS = ("name", "title", "description")


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
    parameters: tuple[str, ...] = ()
    description: str = ""
    kind: Any = "tool"
    """What its decorator declares."""
    options: dict[str, Any] | None = None
    """The decorator's keywords; None without one."""
    is_imported: bool = False


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
        for function, options in _read_cell(textwrap.dedent(source).strip("\n"), known):
            with suppress(ValidationError):  # the kernel refuses them
                tool = _make_tool(function, convert(options, _Options))
                found[tool.kind, tool.name] = tool
    return list(found.values())


def _read_cell(
    source: str, known: dict[str, _Function]
) -> Iterator[tuple[_Function, dict[str, Any]]]:
    """Yield what a cell declares, with the options; notes its functions in `known`."""
    head, _, body = source.partition("\n")
    if (magic := _MAGIC.fullmatch(head)) is None:
        is_other = head.startswith("%%") and not _PYTHON_MAGIC.fullmatch(head)
        yield from _read_plain("" if is_other else source, known)
        return
    kind, line = magic.groups()
    text = f"{line}\n{body}"
    if (start := _find_signature(line)) is None:
        _, options = _read_words(line)
        for function in _list_functions(body):
            known[function.name] = function
            if function.name[0] != "_" and not function.is_imported:
                yield structs.replace(function, kind=kind), (function.options or {}) | options
    elif (signature := _parse_signature(text[start.end() - 1 :])) is not None:
        after, _, body = signature[1].partition("\n")
        _, options = _read_words(f"{line[: start.start()]} {after}")
        description = _describe_body(body, kind)
        function = _Function(start[1], _list_parameters(signature[0]), description, kind)
        known[function.name] = function
        yield function, options


def _read_plain(
    source: str, known: dict[str, _Function]
) -> Iterator[tuple[_Function, dict[str, Any]]]:
    """Yield what the decorators and line magics of a cell declare, as `_read_cell`."""
    for function in _list_functions(source):
        known[function.name] = function
        if function.options is not None:
            yield function, function.options
    for magic in _LINE_MAGIC.finditer(source):
        words, options = _read_words(magic[2])
        for word in " ".join(words).replace(",", " ").split():
            name = word.rpartition(".")[2]
            # An attribute probably is a function; a variable can be anything.
            if word in known or (name != word and name.isidentifier()):
                function = known.get(word) or _Function(name)
                declared = structs.replace(function, kind=magic[1])
                yield declared, (function.options or {}) | options


def _make_tool(function: _Function, options: _Options) -> messages.ToolInfo:
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
        kind=function.kind,
    )


# -- the words on a magic's line -------------------------------------------------------------------


def _read_words(line: str) -> tuple[list[str], dict[str, Any]]:
    """Return the words on a magic's line that are no options, and the options that matter here."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    options: dict[str, Any] = {}
    others: list[str] = []
    with suppress(ValueError):  # an open quote: the kernel refuses the line
        for word in lexer:
            option, equals, value = word.partition("=")
            name = option.removeprefix("--").replace("-", "_")
            if not option.startswith("-"):
                others.append(word)
            elif name == "read_only":
                options[name] = True
            elif name in (*_TEXTS, "tag"):
                value = value if equals else next(lexer, "")
                if name == "tag":
                    tags = filter(None, map(str.strip, value.split(",")))
                    options["tags"] = [*options.get("tags", ()), *tags]
                else:
                    options[name] = value
    return others, options


def _find_signature(line: str) -> re.Match[str] | None:
    """Return the name and parenthesis at which a signature begins on a magic's line."""
    starts = (_CALL.match(line, word.start()) for word in _ONE_WORD.finditer(line))
    return next(filter(None, starts), None)


def _parse_signature(text: str) -> tuple[ast.arguments, str] | None:
    """Return the parameters at the start of a text, and what follows them."""
    for parenthesis in islice(re.finditer(r"\)", text), _MAX_PARENTHESES):
        end = parenthesis.end()
        match _parse(f"def _{text[:end]}: ..."):
            case [ast.FunctionDef(args=arguments)]:
                return arguments, text[end:]
    return None


def _describe_body(body: str, kind: str) -> str:
    """Return what a cell that is a tool's body, or a prompt's text, says of itself."""
    lines = body.strip().splitlines()
    if kind == "prompt":
        return lines[0].lstrip("# ") if lines else ""
    match _parse_cell(body):
        case [ast.Expr(value=ast.Constant(value=str() as text)), _, *_]:
            return text.strip()
    comment = [line.strip() for line in lines]
    end = next((i for i, line in enumerate(comment) if not line.startswith("#")), len(comment))
    return "\n".join(line.lstrip("#").strip() for line in comment[:end])


# -- Python ----------------------------------------------------------------------------------------


def _parse(source: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings, when the cell runs
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # too deeply nested
        return None


def _parse_cell(source: str) -> list[ast.stmt]:
    """Return the statements of a cell, without magics; none if it is not Python."""
    source = textwrap.dedent(source)
    statements = _parse(source)
    if statements is None:
        plain = _ASSIGNED_MAGIC.sub("= 0", _NOT_PYTHON.sub(r"\1pass", source))
        statements = _parse(plain)
    return statements or []


def _list_functions(source: str) -> Iterator[_Function]:
    """Yield the functions that a cell defines, or imports by name."""
    for node in _parse_cell(source):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                decorated = filter(None, map(_read_decorator, node.decorator_list))
                kind, options = next(decorated, ("tool", None))
                text = ast.get_docstring(node) or ""
                yield _Function(node.name, _list_parameters(node.args), text, kind, options)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=arguments)):
                yield _Function(name, _list_parameters(arguments))
            case ast.ImportFrom(names=names):
                for each in names:
                    yield _Function(each.asname or each.name, is_imported=True)


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
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [arguments.vararg] if arguments.vararg else []
    return tuple(
        each.arg
        for each in every
        if each.arg.isascii()
        and len(each.arg) <= 64  # noqa: PLR2004 - as in tool names
        and not (each.annotation and ast.unparse(each.annotation).endswith("Context"))
    )
