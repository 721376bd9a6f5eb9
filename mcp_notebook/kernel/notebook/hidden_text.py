"""What a person may miss in a source that a client proposes: characters, places and magics.

Pure. The sentences come beside the source, which is shown as it is; pages also show each of these
characters by its number.
"""

import ast
import io
import re
import tokenize
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from IPython.core.inputtransformer2 import TransformerManager

LONG_LINE = 500
"""Characters of a line whose end may be out of view."""
EMPTY_LINES = 20
"""Empty lines below which code may be out of view."""
GAP = 40
"""Columns of spaces within a line, likewise."""
_SHOWN = 3
"""Lines that a sentence names; names and magics that have one of their own."""
_NESTED = 8
"""Cell magics below each other that are looked into."""
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPACES = re.compile("[^\\S \t\n\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_LINE_ENDS = re.compile("[\x0b\x1c-\x1e\x85\u2028\u2029]")
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]"
    "|(?<![^\\w\\s\ufe0f])\ufe0f"
)
"""Letters and marks that are not seen. Behind a symbol, U+FE0F is usual: it makes it an emoji."""
_GAP = re.compile(rf"\S {{{GAP},}}(?=\S)")
_TAG = re.compile(r"<[a-z!/][\w-]*[\s/>]", re.IGNORECASE)
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
    if odd := _LINE_ENDS.search(source):
        raise SyntaxError(
            f"IPython would end a line at U+{ord(odd[0]):04X}, and Python would not: in a text, "
            "write its escape"
        )
    # Not the shell's own, which may have the author's transformations, that run code.
    try:
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = TransformerManager().transform_cell(source)
        tree = compile(code, "<proposal>", "exec", flags, dont_inherit=True)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or "it is nested too deeply") from None
    assert isinstance(tree, ast.Module)
    return tree


def describe_hidden(
    source: str, tree: ast.Module | None, find_magic: Callable[[str], object] = lambda _: None
) -> Iterator[str]:
    """Yield a sentence on each thing in a source that a person may miss.

    Args:
        source: The source.
        tree: Its code; None if it is Markdown.
        find_magic: Returns the magic that runs in place of a name, at the start of a cell's only
            line.
    """
    lines = source.split("\n")
    if tree is not None:
        what = "has letters that run from right to left, and move what is beside them"
        yield from _find_lines(lines, _RIGHT_TO_LEFT.search, what)
    what = "changes the direction of text, so that code is not in the order you see"
    yield from _find_lines(lines, _DIRECTION.search, what)
    what = "has a carriage return, which can make text look overwritten"
    yield from _find_lines(lines, re.compile("\r").search, what)
    yield from _find_lines(lines, _SPACES.search, "has a space that is not the usual one")
    yield from _find_lines(lines, _has_invisible, "has invisible characters")
    expanded = [line.expandtabs() for line in lines]
    yield from _find_lines(expanded, _GAP.search, "goes on behind many spaces")
    empty = 0
    for number, line in enumerate(lines, 1):
        if len(line) > LONG_LINE:
            yield f"Line {number} has {len(line):,} characters: read it to its end."
        if not line.strip():
            empty += 1
            continue
        if empty >= EMPTY_LINES:
            yield f"Line {number} stands below {empty} empty lines."
        empty = 0
    if tree is not None:
        yield from _list_first(_describe_names(source), "such names")
        yield from _list_first(_describe_magics(source, tree, find_magic), "magics or commands")
    elif "![" in source or _TAG.search(source):
        yield (
            "It has pictures or HTML: what they load from other computers is loaded as soon as the "
            "text is shown, and its addresses may carry what was read here."
        )


def _list_first(sentences: Iterable[str], what: str) -> Iterator[str]:
    sentences = list(sentences)
    yield from sentences[:_SHOWN]
    if len(sentences) > _SHOWN:
        yield f"It has {len(sentences) - _SHOWN} more {what}."


def _find_lines(lines: list[str], finds: Callable[[str], object], what: str) -> Iterator[str]:
    if numbers := [str(number) for number, line in enumerate(lines, 1) if finds(line)]:
        more = " ..." if len(numbers) > _SHOWN else ""
        yield f"Line {', '.join(numbers[:_SHOWN])}{more} {what}."


def _has_invisible(line: str) -> bool:
    return _UNSEEN.search(line) is not None or any(map(_is_invisible, line))


def _is_invisible(character: str) -> bool:
    is_format = unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")
    return is_format and character not in "\t\r" and not _DIRECTION.match(character)


def _describe_names(source: str) -> Iterator[str]:
    names: dict[str, None] = {}
    with suppress(tokenize.TokenError, SyntaxError):  # a magic; the names before it are there
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                names[token.string] = None
    for name in names:
        character = next(each for each in name if not each.isascii())
        meaning = unicodedata.name(character, "unknown")
        yield (
            f"The name `{name}` has a letter that may look like another one: "
            f"U+{ord(character):04X}, {meaning}."
        )


def _describe_magics(
    source: str, tree: ast.Module, find_magic: Callable[[str], object]
) -> Iterator[str]:
    seen: dict[str, None] = {}
    for node in _list_nodes(source, tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of = node.func.value
        if isinstance(of, ast.Call) and isinstance(of.func, ast.Name):
            text = _RUNNERS.get(node.func.attr) if of.func.id == "get_ipython" else None
            word = node.args[0] if text and node.args else None
            named = word.value if isinstance(word, ast.Constant) else "..."
            if text and named != "mcp_tool":
                seen[text.format(str(named).split("\n")[0][:60])] = None
    # IPython's automagic, for which code may be Python as well: `sx (rm)`.
    word_alone = re.match(r"[\w.]+", source.strip())
    if word_alone and len(source.strip().splitlines()) == 1 and find_magic(word_alone[0]):
        seen[f"the magic `%{word_alone[0]}`, unless you have a variable of this name"] = None
    for text in sorted(seen, key=lambda text: "!" not in text):  # the shell's come first
        yield f"It runs {text}."


def _list_nodes(source: str, tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of a cell's code, and of what stands below cell magics if that is code."""
    yield from ast.walk(tree)
    for _ in range(_NESTED):
        head, _, source = source.lstrip().partition("\n")
        if not head.startswith("%%"):
            return
        with suppress(SyntaxError):
            yield from ast.walk(parse_source(source))
