"""What a person may miss in a source that a client proposes: characters, places and magics.

Pure. The sentences come beside the source, which is shown as it is; pages also show each of these
characters by its number.
"""

import ast
import io
import re
import tokenize
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

from IPython.core.inputtransformer2 import TransformerManager

LONG_LINE = 500
"""Characters of a line whose end may be out of view."""
EMPTY_LINES = 20
"""Empty lines below which code may be out of view."""
_SHOWN = 3
"""Lines and magics that a sentence names."""
_NESTED = 8
"""Cell magics below each other that are looked into."""
_LINE_ENDS = re.compile("[\x0b\x1c-\x1e\x85\u2028\u2029]")
_UNUSUAL = re.compile("[^\t -~\ufe0f]|(?<![^\\w\\s\ufe0f])\ufe0f")
"""Behind a symbol, U+FE0F is usual: it makes it an emoji."""
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that are not seen."""
_GAP = re.compile(r"\S {40,}(?=\S)")
_TAG = re.compile(r"<[a-z!/][\w-]*[\s/>]", re.IGNORECASE)
_NO_CODE = (SyntaxError, ValueError, RuntimeError, MemoryError)
"""What IPython, of 500 magics or more, and Python raise of a source."""
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
    try:
        return _parse(_transform(source))
    except (ValueError, RuntimeError, MemoryError) as error:
        raise SyntaxError(str(error) or "it is nested too deeply") from None


def _transform(source: str) -> str:
    # Not the shell's own, which may have the author's transformations, that run code.
    return str(TransformerManager().transform_cell(source))


def _parse(code: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(code, "<proposal>", "exec", flags, dont_inherit=True)
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
    found = defaultdict[str, list[int]](list)
    empty = 0
    codes = [] if tree is None else [*_list_codes(source)]
    odd = _find_odd_names(codes)
    for number, line in enumerate(source.split("\n"), 1):
        for what in _judge(line, empty, odd, is_code=tree is not None):
            found[what].append(number)
        empty = 0 if line.strip() else empty + 1
    for what, numbers in found.items():
        yield f"Line {_list_first(numbers, ', ')} {what}."
    if tree is not None:
        if magics := _find_magics(source, codes, find_magic):
            yield f"It runs {_list_first(magics, '; ')}."
    elif "![" in source or _TAG.search(source):
        yield (
            "It has pictures or HTML: what they load from other computers is loaded as soon as the "
            "text is shown, and its addresses may carry what was read here."
        )


def _list_first(words: Sequence[object], separator: str) -> str:
    return separator.join(map(str, words[:_SHOWN])) + " ..." * (len(words) > _SHOWN)


def _judge(line: str, empty: int, odd: Sequence[str], *, is_code: bool) -> Iterator[str]:
    """Yield what a person may miss in a line below so many empty ones, with odd names in it."""
    unusual = _UNUSUAL.findall(line)
    if any(not each.isprintable() or _FILLERS.match(each) for each in unusual):
        yield "has characters that are not seen, or that move or cover others"
    if is_code and any(unicodedata.bidirectional(each) in ("R", "AL", "AN") for each in unusual):
        yield "has letters that run from right to left, and move what is beside them"
    if len(line) > LONG_LINE:
        yield f"has more than {LONG_LINE} characters: read it to its end"
    if _GAP.search(line.expandtabs()):
        yield "goes on behind many spaces"
    if line.strip() and empty >= EMPTY_LINES:
        yield f"stands below {EMPTY_LINES} empty lines or more"
    if any(name in line for name in odd):
        yield "has a name with letters outside ASCII, which may look like others"


def _list_codes(source: str) -> Iterator[str]:
    """Yield a cell's code, and that of what stands below each of its cell magics.

    Magics are calls in it, as in what runs: a quote in a magic does not begin a text.
    """
    for _ in range(1 + _NESTED):
        with suppress(*_NO_CODE):
            yield _transform(source)
        head, _, source = source.lstrip().partition("\n")
        if not head.startswith("%%"):
            return


def _find_odd_names(codes: Sequence[str]) -> list[str]:
    names = set()
    for code in codes:
        with suppress(tokenize.TokenError, SyntaxError):  # no Python; the names before it are there
            for token in tokenize.generate_tokens(io.StringIO(code, newline=None).readline):
                # Python 3.11 takes some letters of names for errors here.
                if token.type in (tokenize.NAME, tokenize.ERRORTOKEN):
                    names.add(token.string)
    return [name for name in names if not name.isascii()]


def _find_magics(
    source: str, codes: Sequence[str], find_magic: Callable[[str], object]
) -> list[str]:
    seen: dict[str, None] = {}
    trees = []
    for code in codes:
        with suppress(*_NO_CODE):
            trees.append(_parse(code))
    for node in chain.from_iterable(map(ast.walk, trees)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name("get_ipython")), attr=method),
                args=words,
            ) if method in _RUNNERS:
                word = words[0] if words else None  # it may be given by name
                named = str(word.value) if isinstance(word, ast.Constant) else "..."
                if named != "mcp_tool":
                    seen[_RUNNERS[method].format(named.split("\n")[0][:60])] = None
    # IPython's automagic, for which code may be Python as well: `sx (rm)`.
    if (line := re.fullmatch(r"([\w.]+).*", source.strip())) and find_magic(line[1]):
        seen[f"the magic `%{line[1]}`, unless you have a variable of this name"] = None
    return sorted(seen, key=lambda text: "!" not in text)  # the shell's come first
