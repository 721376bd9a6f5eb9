"""The types of parameters without a type hint: what the default says, and what the body shows.

Runs in the user's kernel: at definition, and `explain_list` when a call has failed. Pure; the body
is parsed, not run, and its data flow is not followed. Data libraries are not imported.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.parameters.callables import read_source
from mcp_notebook.kernel.schemas.parameters.sent_arguments import read_json_texts
from mcp_notebook.kernel.schemas.schema_words import Schema, describe_schema

# -- what the default says -------------------------------------------------------------------------


def _read_container(value: Any) -> Any:
    read = read_json_texts({"": value}, [("",)]) if isinstance(value, str) else None
    return value if read is None else read[""]


def _read_tuple(value: Any) -> Any:
    read = _read_container(value)
    return tuple(read) if isinstance(read, list) else read


_NUMBER = WithJsonSchema({"type": "number"})
_BY_DEFAULT: Mapping[type, Any] = {
    bool: bool,
    str: str,
    int: Annotated[int | float, Field(union_mode="left_to_right"), _NUMBER],
    float: Annotated[float | int, _NUMBER],
    tuple: Annotated[Any, BeforeValidator(_read_tuple)],
    **dict.fromkeys((list, dict), Annotated[Any, BeforeValidator(_read_container)]),
}
_ALTERNATIVES = re.compile(
    r"\bor\b|[|{/'\"]|,\s*(?!optional|default)|array|sequence|list|none", re.IGNORECASE
)


def find_default_hint(default: Any, documented: str = "") -> Any:
    """Return the type hint that a default is evidence of; `Any` if of none.

    ``1`` does not say whether 2.5 is allowed (``alpha=1``), nor ``0.25`` whether 30 is
    (``test_size=0.25``), so either allows any number, and a whole number stays an int. Beside a
    list, a tuple or a dict, other values are common (``size=(3, 3)`` and ``size=3``), so any value
    is accepted: JSON in a text is read, and a list becomes a tuple if the default is one.

    Args:
        default: The parameter's.
        documented: The docstring's words for its type, which are not certainly a type. If they
            name alternatives, the default is only one of them.
    """
    return Any if _ALTERNATIVES.search(documented) else _BY_DEFAULT.get(type(default), Any)


# -- what the body shows ---------------------------------------------------------------------------

_OTHER = "a dict or another object"
_ATTRIBUTES = {
    "a table": "assign columns group_by groupby iterrows itertuples melt merge pivot pivot_table"
    " select_dtypes set_index with_columns",
    "a series or a table": "corr cov describe diff drop_duplicates dropna dt ewm fillna head idxmax"
    " idxmin iloc isin isna loc median nlargest nsmallest nunique pct_change quantile rank resample"
    " reset_index rolling shift sort_index sort_values str tail to_numpy unique value_counts",
    "an array": "T argmax argmin argsort astype dot dtype flatten ndim ravel reshape shape",
    "an array or a table": "all any clip cumprod cumsum max mean min prod round sum",
    "an array or a series": "std var",  # arrays divide by n, series by n - 1
    _OTHER: "get items keys pop update",
}
"""Attributes by what has them."""
_OWNERS = {name: owner for owner, names in _ATTRIBUTES.items() for name in names.split()}
_MAX_LINES = 1_000
"""Lines of a body that is read."""
_SHOWING = (
    *(ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp, ast.arg),
    *(ast.comprehension, ast.ExceptHandler, ast.Match),
)
"""Nodes that are compared with patterns."""
_PART = r"[^\][()'\"]*"
_PATTERNS = {
    # What may also be another value, or is another variable.
    _OTHER: r"(?:\w+\.)?(?:isinstance|hasattr|type|isscalar|iterable|callable|ndim)\(X\b.*"
    r"|X\.(?:index|values)\(.*|X [!=<>a-z ]+ '[^']*'|match X:.*|\(argument\) X\b.*"
    r"| for (?:(?! in ).)*\bX\b.* in .*|except [^\n]*(?:Attribute|Type)Error.*",
    "a table": r"X\[\['.*|X\[\(*X(?:\['[^']*'\]|\.\w+) [<>=!].*",
    "an array": r"X @ .*|.* @ X|X\[\(*X [<>=!].*|X\[\.\.\., .*"
    rf"|X\[{_PART}(?::{_PART},|,{_PART}:){_PART}\]",
}
"""Patterns of code about a name X, as `ast.unparse` writes it."""


def is_array_attribute(attribute: str) -> bool:
    """Return whether arrays, series or tables have an attribute, and objects of other kinds not."""
    return _OWNERS.get(attribute, _OTHER) != _OTHER


class BodyHint(Struct, frozen=True):
    """The type that a function's body shows of a parameter."""

    hint: Any
    becomes: str
    """What lists become, in words."""
    seen: str
    """The expression that shows it."""


def find_body_hints(
    function: Callable[..., Any], names: Sequence[str], words: Mapping[str, Any]
) -> dict[str, BodyHint]:
    """Return the types that a function's body shows of parameters, where it shows just one.

    Args:
        function: Any callable; without Python source, its body shows nothing.
        names: The parameters.
        words: The classes of the imported data libraries, by `list_library_words`.
    """
    try:
        match read_source(function).body if names else []:
            case [ast.FunctionDef() | ast.AsyncFunctionDef() as whole]:
                body = whole.body if (whole.end_lineno or 0) < _MAX_LINES else []
            case body:  # a cell that is the body of a tool
                pass
        shown = {name: list(_list_expressions(body, name)) for name in names}
    except RecursionError:
        return {}
    hints = {name: _choose_hint(texts, name, words) for name, texts in shown.items()}
    return {name: hint for name, hint in hints.items() if hint is not None}


def _choose_hint(texts: Sequence[str], name: str, words: Mapping[str, Any]) -> BodyHint | None:
    array, table, series = (words.get(word) for word in ("ndarray", "dataframe", "series"))
    seen: dict[str, str] = {}
    for text in texts:
        seen.setdefault(_find_owner(text, name, (array, table)), text)
    hints = {"a table": table, "a series or a table": series, "an array": array}
    if table is None or "an array or a series" not in seen:
        hints["an array or a table"] = array
    for becomes, hint in hints.items():
        is_sure = becomes == "a table" or "unknown" not in seen
        if becomes in seen and hint is not None and is_sure and _OTHER not in seen:
            is_either = becomes.endswith("or a table") and table is not None
            chosen = _make_either(table, hint) if is_either else hint
            return BodyHint(chosen, becomes, seen[becomes])
    return None


def _list_expressions(body: Sequence[ast.stmt], name: str) -> Iterator[str]:
    """Yield the code of a function's body by parts, until a name stands for another object.

    After ``df = df.copy()`` and ``df = df[df["a"] > 0]`` it does not.
    """
    same = re.compile(rf"{name} = {name}(?:\.|\[(?!['\d]))")
    for statement in body:
        nodes = list(ast.walk(statement))
        for node in nodes:
            if isinstance(node, _SHOWING):
                yield f"{'(argument) ' * isinstance(node, ast.arg)}{ast.unparse(node)}"
        names = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
        is_bound = not all(isinstance(node.ctx, ast.Load) for node in names)
        if is_bound and not same.match(ast.unparse(statement)):
            return


def _find_owner(text: str, name: str, kinds: Sequence[Any]) -> str:
    """Return what code shows of a name; "" if nothing."""
    if found := re.fullmatch(rf"{name}(\['[^']*'\]|\[\w+\])?\.(\w+)", text):
        owner = _OWNERS.get(found[2], "")
        if found[1]:
            is_column = found[1][1] == "'" or owner == "a series or a table"
            owner = owner.replace(_OTHER, "")
            return "a table" if owner and is_column else owner
        is_known = owner or any(hasattr(kind, found[2]) for kind in kinds)
        return owner if is_known else "unknown"  # a column, or an attribute of another object
    forms = ((owner, form.replace("X", name)) for owner, form in _PATTERNS.items())
    return next((owner for owner, form in forms if re.fullmatch(form, text, re.DOTALL)), "")


def _make_either(table: Any, other: Any) -> Any:
    """Return the type of a table, from rows or columns, or else of another object."""

    def choose(sent: Any) -> str:
        is_rows = isinstance(sent, list) and bool(sent) and isinstance(sent[0], dict)
        is_columns = isinstance(sent, dict) and all(
            isinstance(item, list) for item in sent.values()
        )
        return "table" if is_rows or is_columns else "other"

    options = Annotated[table, Tag("table")] | Annotated[other, Tag("other")]
    return Annotated[options, Discriminator(choose)]


# -- what to write, when a call has failed ---------------------------------------------------------

_OF_LISTS = re.compile(
    r"'(?:list|dict)' object has no attribute '(\w+)'|list indices must be .* not (?:str|tuple)"
    r"|(?:operand|not supported) .*'list'|multiply sequence by non-int"
)


def explain_list(error: BaseException, arguments: Mapping[str, Any], schema: Schema) -> str | None:
    """Return what to write if a list was used like an array or a table; None if it was not.

    Args:
        error: What the function raised.
        arguments: As the client sent them.
        schema: The tool's input schema.
    """
    is_of_lists = isinstance(error, AttributeError | TypeError)
    found = _OF_LISTS.search(describe_error(error)) if is_of_lists else None
    if found is None or not is_array_attribute(found[1] or "T"):
        return None
    names = [
        f"`{name}`"
        for name, part in schema.get("properties", {}).items()
        if isinstance(arguments.get(name), list | dict)
        and describe_schema(part, schema) == "any value"
    ]
    if not names:
        return None
    return (
        f"Nothing says the type of {' and '.join(names)}, so lists stay lists: for an array, a "
        "series or a table, write the type hint `np.ndarray`, `pd.Series` or `pd.DataFrame`."
    )
