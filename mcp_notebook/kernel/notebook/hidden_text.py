"""What a person may miss in a source that a client proposes: characters, places and magics.

Pure. The sentences come beside the source, which is shown as it is; pages also show each of these
characters by its number.
"""

import ast
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress

from IPython.core.inputtransformer2 import TransformerManager

LONG_LINE = 500
"""Characters of a line whose end may be out of view."""
EMPTY_LINES = 20
"""Empty lines below which code may be out of view."""
GAP = 40
"""Spaces within a line, likewise."""
_SHOWN = 3
"""Lines or words that a sentence names."""
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPACES = re.compile("[^\\S \t\n\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_RETURN = re.compile("\r")
_GAP = re.compile(rf"\S[ \t]{{{GAP},}}(?=\S)")
_RUNNERS = {
    "run_cell_magic": "the cell magic `%%{}`, which decides what becomes of the lines below it",
    "run_line_magic": "the magic `%{}`",
    "system": "a command of the shell, `!{}`",
    "getoutput": "a command of the shell, `!{}`",
}
"""The methods of IPython that its syntax stands for."""


def parse_source(source: str) -> ast.Module:
    """Return a cell's code; magics are the calls of IPython's that they stand for.

    Raises:
        SyntaxError: It is not a cell's code.
    """
    # Not the shell's own, which may have the author's transformations, that run code.
    try:
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = TransformerManager().transform_cell(source)
        tree = compile(code, "<proposal>", "exec", flags, dont_inherit=True)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or "it is nested too deeply") from None
    assert isinstance(tree, ast.Module)
    return tree


def describe_hidden(source: str, tree: ast.Module | None) -> Iterator[str]:
    """Yield a sentence on each thing in a source that a person may miss.

    Args:
        source: The source.
        tree: Its code; None if it is Markdown.
    """
    lines = source.split("\n")
    yield from _describe_characters(lines)
    for number, line in enumerate(lines, 1):
        if len(line) > LONG_LINE:
            yield f"Line {number} has {len(line):,} characters: read it to its end."
        elif _GAP.search(line):
            yield f"Line {number} goes on behind many spaces."
    empty = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            empty += 1
            continue
        if empty >= EMPTY_LINES:
            yield f"Line {number} stands below {empty} empty lines."
        empty = 0
    if tree is not None:
        yield from _describe_names(source)
        yield from _describe_magics(tree)


def _describe_characters(lines: list[str]) -> Iterator[str]:
    for pattern, what in (
        (_DIRECTION, "changes the direction of text, so that code is not in the order you see"),
        (_RETURN, "has a carriage return, which can make text look overwritten"),
        (_SPACES, "has a space that is not the usual one"),
    ):
        if places := [number for number, line in enumerate(lines, 1) if pattern.search(line)]:
            yield f"{_list_lines(places)} {what}."
    found = [number for number, line in enumerate(lines, 1) if any(map(_is_invisible, line))]
    if found:
        yield f"{_list_lines(found)} has invisible characters."


def _is_invisible(character: str) -> bool:
    if character in "\t\r" or (character.isascii() and character.isprintable()):
        return False
    is_format = unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")
    return is_format and not _DIRECTION.match(character)


def _describe_names(source: str) -> Iterator[str]:
    names: dict[str, None] = {}
    with suppress(tokenize.TokenError, SyntaxError):  # a magic; the names before it are there
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                names[token.string] = None
    for name in list(names)[:_SHOWN]:
        character = next(each for each in name if not each.isascii())
        meaning = unicodedata.name(character, "unknown")
        yield (
            f"The name `{name}` has a letter that may look like another one: "
            f"U+{ord(character):04X}, {meaning}."
        )


def _describe_magics(tree: ast.Module) -> Iterator[str]:
    seen: dict[str, None] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of = node.func.value
        if isinstance(of, ast.Call) and isinstance(of.func, ast.Name):
            text = _RUNNERS.get(node.func.attr) if of.func.id == "get_ipython" else None
            word = node.args[0] if text and node.args else None
            named = word.value if isinstance(word, ast.Constant) else "..."
            if text and named != "mcp_tool":
                seen[text.format(str(named).split("\n")[0][:60])] = None
    for text in list(seen)[:_SHOWN]:
        yield f"It runs {text}."


def _list_lines(numbers: Iterable[int]) -> str:
    numbers = list(numbers)
    shown = ", ".join(map(str, numbers[:_SHOWN])) + (" ..." if len(numbers) > _SHOWN else "")
    return f"Line {shown}"
