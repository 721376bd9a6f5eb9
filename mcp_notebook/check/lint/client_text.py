"""Follows text from a client to code that would run it, open it or search by it.

Runs in the process of the command. Pure. Text is followed
through assignments, string operations and functions of the same notebook; it is lost in any other
call, so what is found is there, and what is hidden behind other libraries is not found. Numbers,
`Literal`, enumerations and parameters with a pattern are checked before the function runs. A
membership test that ends the function clears a name (``if name not in TABLES: raise``).

Bandit (Apache-2.0) does not replace it: it reports every import of `subprocess` and each
f-string with a SQL word wherever its values come from, and knows no client, notebook or DataFrame.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mcp_notebook.check.lint.effects import MAX_DEPTH, find_root
from mcp_notebook.check.lint.sources import (
    Function,
    NotebookSource,
    list_assignments,
    list_imports,
)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """A place that text from a client reaches."""

    rule: str
    cell: int
    line: int
    parameter: str
    """The tool's parameter that the text comes from."""
    reason: str
    """What happens with the text, as the end of a sentence."""
    advice: str


_SHELLS = frozenset(
    (
        "os.system",
        "os.popen",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "asyncio.create_subprocess_shell",
        "commands.getoutput",
    )
)
_PROCESSES = frozenset(
    f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")
)
_EXECS = frozenset(("asyncio.create_subprocess_exec",))
_CODE = frozenset(
    (
        "builtins.eval",
        "builtins.exec",
        "builtins.compile",
        "builtins.__import__",
        "importlib.import_module",
        "runpy.run_path",
    )
)
_FILES = frozenset(
    (
        *("builtins.open", "io.open", "os.remove", "os.unlink", "os.listdir", "os.scandir"),
        *("os.rmdir", "os.makedirs", "os.mkdir", "shutil.rmtree", "shutil.copy", "shutil.move"),
        *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.save", "numpy.savetxt"),
        *("matplotlib.pyplot.imread", "matplotlib.pyplot.savefig", "PIL.Image.open", "joblib.load"),
        *("xarray.open_dataset", "gzip.open", "zipfile.ZipFile", "tarfile.open", "glob.glob"),
    )
)
_READS = re.compile(
    r"(?:pandas|polars|geopandas)\.(?:read|scan)_(?!sql|database|clipboard|html)\w+"
)
_FILE_METHODS = frozenset(
    (
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "unlink",
        "iterdir",
        "glob",
        "rglob",
        "rmdir",
        "mkdir",
        "touch",
    )
)
_EXPORTS = frozenset(
    (
        "to_csv",
        "to_parquet",
        "to_excel",
        "to_json",
        "to_pickle",
        "savefig",
        "write_csv",
        "write_parquet",
    )
)
_SQL_FUNCTIONS = frozenset(
    (
        *("pandas.read_sql", "pandas.read_sql_query", "polars.read_database", "duckdb.sql"),
        *("duckdb.query", "duckdb.execute", "polars.read_database_uri", "pandasql.sqldf"),
    )
)
_SQL_METHODS = frozenset(
    (
        "execute",
        "executemany",
        "executescript",
        "sql",
        "query",
        "read_sql",
        "exec_driver_sql",
        "fetch",
        "fetchrow",
    )
)
_SQL_WORDS = re.compile(
    r"\b(?:select\b.*\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|drop\s+table|create\s+table"
    r"|where\b|order\s+by|group\s+by)\b",
    re.IGNORECASE | re.DOTALL,
)
_CONNECTION = re.compile(
    r"(?:^|_)(?:con|conn|connection|cur|cursor|db|database|engine|session|sqlite|duckdb|spark)\d*$",
    re.IGNORECASE,
)
_CONNECTS = re.compile(
    r"(?:sqlite3|duckdb|psycopg2?|mysql\.connector|sqlalchemy|pyodbc|oracledb)\."
)
_FRAME = re.compile(r"(?:^|_)(?:df|frame|dataframe)\d*(?:_|$)", re.IGNORECASE)
_FRAME_MAKERS = re.compile(
    r"(?:pandas|geopandas)\.(?:DataFrame|read_\w+|concat|merge)$|vega_datasets\."
)
_MAX_STEPS = 20
"""Assignments and calls that are followed back from a value."""
_COMPARISON = re.compile(r"[<>]|[=!]=|\b(?:in|and|or|not)\b|@\w")
_STRING_METHODS = frozenset(
    (
        *("strip", "lstrip", "rstrip", "lower", "upper", "title", "casefold", "format", "join"),
        *("replace", "removeprefix", "removesuffix", "split", "rsplit", "splitlines", "encode"),
        *("decode", "partition", "rpartition", "expanduser", "absolute", "joinpath", "with_suffix"),
        *("with_name", "as_posix", "copy", "get", "pop", "items", "values", "keys", "capitalize"),
        *("zfill", "ljust", "rjust", "center", "expandtabs", "dict", "model_dump"),
    )
)
"""Methods whose result has the text of their object or of their arguments."""
_PASSING = frozenset(
    (
        *("builtins.str", "builtins.list", "builtins.tuple", "builtins.set", "builtins.sorted"),
        *("builtins.reversed", "builtins.dict", "builtins.bytes", "builtins.iter", "builtins.next"),
        *("builtins.enumerate", "builtins.zip", "builtins.repr", "builtins.format"),
        *("pathlib.Path", "pathlib.PurePath", "os.path.join", "os.path.expanduser", "os.fspath"),
        *("os.path.abspath", "os.path.normpath", "textwrap.dedent", "sqlalchemy.text"),
        *("shlex.split", "json.loads", "sqlalchemy.sql.text", "copy.copy", "copy.deepcopy"),
    )
)
"""Functions whose result has the text of their arguments."""
_SAFE_TYPES = frozenset(
    (
        *("int", "float", "bool", "complex", "None", "Literal", "date", "datetime", "time"),
        *("timedelta", "Decimal", "UUID", "Context", "Timestamp", "Timedelta", "Fraction"),
        *("DataFrame", "Series", "ndarray", "NDArray", "PositiveInt", "NonNegativeInt", "Image"),
        *("conint", "confloat", "StrictInt", "StrictFloat", "StrictBool", "PublicURL", "Hidden"),
    )
)
"""Types whose values are not text that a client chooses."""
_CONTAINERS = frozenset(
    (
        "list",
        "List",
        "Sequence",
        "tuple",
        "Tuple",
        "set",
        "Set",
        "Optional",
        "Union",
        "Iterable",
        "frozenset",
        "Annotated",
        "dict",
        "Dict",
        "Mapping",
    )
)
_CHECKS = frozenset(
    (
        "isalnum",
        "isalpha",
        "isdigit",
        "isdecimal",
        "isnumeric",
        "isidentifier",
        "fullmatch",
        "match",
        "is_relative_to",
        "issubset",
    )
)
"""Methods that decide whether a text is acceptable."""

_SHELL_ADVICE = (
    "Give the program and its arguments as a list, without `shell=True`: "
    '`subprocess.run(["program", "--", {}])`.'
)
_CODE_ADVICE = (
    "Offer the choices as a parameter of type `Literal`, or read values with `ast.literal_eval`."
)
_FILE_ADVICE = (
    "Offer the files as a parameter of type `Literal`, or check the path: "
    "`path = (FOLDER / {0}).resolve()`, and raise `ToolError` unless "
    "`path.is_relative_to(FOLDER.resolve())`."
)
_SQL_ADVICE = (
    'Put a placeholder into the text and pass the value apart: `execute("... WHERE x = ?", [{}])`. '
    "A table's or column's name becomes a parameter of type `Literal`."
)
_QUERY_ADVICE = (
    'Refer to the variable by `@`, as in `df.query("x == @{}")`, or filter with `df[df.x == {}]`.'
)


def find_reaches(
    source: NotebookSource, function: Function, cell: int, *, is_method: bool = False
) -> list[Reach]:
    """Return the places that a client's text reaches from a tool's parameters."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters = [*parameters[is_method:], *filter(None, (arguments.vararg, arguments.kwarg))]
    text = {each.arg: each.arg for each in parameters if _takes_text(each.annotation, source)}
    found = _Tracer(source).trace(function, cell, text)
    unique = {(each.rule, each.cell, each.line): each for each in reversed(found)}
    return sorted(unique.values(), key=lambda each: (each.cell, each.line))


def _takes_text(  # noqa: PLR0911 - a table
    annotation: ast.expr | None, source: NotebookSource
) -> bool:
    """Return whether a parameter takes text that a client chooses."""
    if annotation is None:
        return True
    if isinstance(annotation, ast.Constant):
        if annotation.value is None:
            return False
        try:
            return _takes_text(ast.parse(str(annotation.value), mode="eval").body, source)
        except (SyntaxError, ValueError):
            return True
    if isinstance(annotation, ast.BinOp):  # `str | None`
        return any(_takes_text(each, source) for each in (annotation.left, annotation.right))
    if isinstance(annotation, ast.Subscript):
        return _takes_text_of(annotation, source)
    name = _last_name(annotation)
    if name in source.values:  # an alias: `Region = Literal["EU", "US"]`
        return _takes_text(source.values[name], source)
    if name in source.classes:
        return _holds_text(source.classes[name], source)
    return name not in _SAFE_TYPES


def _takes_text_of(annotation: ast.Subscript, source: NotebookSource) -> bool:
    name = _last_name(annotation.value)
    inside = annotation.slice
    parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
    if name == "Annotated":
        is_checked = any(
            word.arg in ("pattern", "regex")
            for part in parts[1:]
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
            for word in node.keywords
        ) or any(_last_name(part) == "Hidden" for part in parts[1:])
        return not is_checked and _takes_text(parts[0], source)
    if name in _CONTAINERS:
        return any(_takes_text(part, source) for part in parts)
    return name not in _SAFE_TYPES


def _holds_text(node: ast.ClassDef, source: NotebookSource) -> bool:
    """Return whether a class of the notebook has fields with text; enumerations have none."""
    if any("Enum" in (_last_name(base) or "") for base in node.bases):
        return False
    return any(
        _takes_text(item.annotation, source)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
    )


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


class _Tracer:
    """Follows text through a function and those of the notebook that it calls."""

    def __init__(self, source: NotebookSource) -> None:
        self._source = source
        self._open: list[str] = []

    def trace(self, function: Function, cell: int, text: Mapping[str, str]) -> list[Reach]:
        """Return what text in some of a function's parameters reaches.

        Args:
            function: The function.
            cell: Its cell.
            text: The tool's parameters that the texts come from, by the function's parameters.
        """
        if not text or function.name in self._open or len(self._open) > MAX_DEPTH:
            return []
        self._open.append(function.name)
        flow = _Flow(self._source, function, text)
        found = [
            reach
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
            for reach in (
                *_describe_sinks(node, flow, cell),
                *self._follow(node, flow),
            )
        ]
        self._open.pop()
        return found

    def _follow(self, call: ast.Call, flow: "_Flow") -> list[Reach]:
        """Follow text into a function of the notebook."""
        if not isinstance(call.func, ast.Name) or call.func.id not in self._source.functions:
            return []
        known = self._source.functions[call.func.id]
        names = [each.arg for each in (*known.node.args.posonlyargs, *known.node.args.args)]
        given = dict(zip(names, call.args, strict=False))
        given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
        text = {
            name: origin for name, value in given.items() if (origin := flow.find_origin(value))
        }
        return self.trace(known.node, known.cell, text)


class _Flow:
    """The names of a function that hold text from a client."""

    def __init__(self, source: NotebookSource, function: Function, text: Mapping[str, str]) -> None:
        self._source = source
        self._modules = dict(source.modules)
        for node in ast.walk(function):
            self._modules.update(list_imports(node))
        arguments = function.args
        self.paths = {
            each.arg
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if each.annotation is not None and "Path" in ast.unparse(each.annotation)
        }
        """The parameters that are paths."""
        self._checked = set(_list_checked(function))
        self._origins: dict[str, str] = {
            name: origin for name, origin in text.items() if name not in self._checked
        }
        self._made: dict[str, ast.expr] = {}
        """The values that names were assigned last."""
        assignments = list(_list_made(function))
        # Until nothing is added: a loop may use a name above its assignment.
        before = -1
        while before != len(self._origins):
            before = len(self._origins)
            for name, value in assignments:
                self._made[name] = value
                origin = self.find_origin(value)
                if origin and name not in self._origins and name not in self._checked:
                    self._origins[name] = origin

    def find_name(self, node: ast.expr) -> str | None:
        """Return the dotted name of a function of a library, or of a builtin."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._modules:
            return ".".join((self._modules[node.id], *parts))
        if node.id == "get_ipython" or parts or node.id in self._source.functions:
            return None
        return f"builtins.{node.id}"

    def find_value(self, node: ast.expr) -> ast.expr:
        """Return the expression that a name was assigned, in the function or the notebook."""
        if isinstance(node, ast.Name):
            return self._made.get(node.id) or self._source.values.get(node.id) or node
        return node

    def find_origin(  # noqa: C901, PLR0911 - a table
        self, node: ast.expr | None
    ) -> str | None:
        """Return the parameter whose text a value has; None if it has none."""
        match node:
            case ast.Name():
                return self._origins.get(node.id)
            case ast.Attribute() | ast.Starred() | ast.Await() | ast.NamedExpr():
                if isinstance(node, ast.Attribute) and node.attr in ("name", "stem", "suffix"):
                    return None  # of a path: no way out of its folder
                return self.find_origin(node.value)
            case ast.Subscript():
                return self.find_origin(node.value)
            case ast.BinOp():
                return self.find_origin(node.left) or self.find_origin(node.right)
            case ast.JoinedStr() | ast.BoolOp():
                return self._find_any(node.values)
            case ast.FormattedValue():
                return None if _is_number_format(node) else self.find_origin(node.value)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._find_any(node.elts)
            case ast.Dict():
                return self._find_any(node.values)
            case ast.IfExp():
                return self.find_origin(node.body) or self.find_origin(node.orelse)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self.find_origin(node.elt)
            case ast.Call():
                return self._find_of_call(node)
        return None

    def _find_any(self, nodes: list[ast.expr]) -> str | None:
        return next((origin for each in nodes if (origin := self.find_origin(each))), None)

    def _find_of_call(self, call: ast.Call) -> str | None:
        given = [*call.args, *(word.value for word in call.keywords)]
        name = self.find_name(call.func)
        if name is not None:
            return self._find_any(given) if name in _PASSING else None
        if isinstance(call.func, ast.Name):
            known = self._source.functions.get(call.func.id)
            is_passed = known is not None and _returns_parameter(known.node)
            return self._find_any(given) if is_passed else None
        if isinstance(call.func, ast.Attribute) and call.func.attr in _STRING_METHODS:
            own = self.find_origin(call.func.value)
            is_lookup = call.func.attr in ("get", "pop")
            return own or (None if is_lookup else self._find_any(given))
        return None


def _is_number_format(node: ast.FormattedValue) -> bool:
    """Return whether a format such as ``:d`` or ``:.2f`` lets only numbers pass."""
    spec = node.format_spec
    if not isinstance(spec, ast.JoinedStr) or not spec.values:
        return False
    last = spec.values[-1]
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in "bcdeEfFgGnoxX%"


def _returns_parameter(function: Function) -> bool:
    """Return whether a function certainly returns a text that has its parameters."""
    names = {each.arg for each in (*function.args.posonlyargs, *function.args.args)}
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(
            node.value, ast.JoinedStr | ast.BinOp | ast.Name
        ):
            used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            if used & names and not set(_list_checked(function)) & used:
                return True
    return False


def _list_made(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that get values, and the values, with what lists are filled with."""
    for assignment in list_assignments(function):
        yield assignment.name, assignment.value
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "add", "update")
            and isinstance(node.func.value, ast.Name)
        ):
            for argument in node.args:
                yield node.func.value.id, argument


def _list_checked(function: Function) -> Iterator[str]:
    """Yield the names that the function tests before it goes on."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _ends(node.body)):
            yield from _list_tested(node.test)
        elif isinstance(node, ast.Try) and any(_ends(each.body) for each in node.handlers):
            # `TABLES[name]` or `int(text)` within it fails for any other text.
            for inner in node.body:
                if isinstance(inner, ast.Expr):
                    yield from _list_tested(inner.value)


def _ends(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def _list_tested(test: ast.expr) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(
            node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq
        ):
            if _is_list_of_choices(node.comparators[0], node.ops[0]):
                yield from _list_names(node.left)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            yield from _list_names(node.left)  # `set(columns) - set(frame)`
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _CHECKS
        ):
            for part in (node.func.value, *node.args):
                yield from _list_names(part)


def _is_list_of_choices(node: ast.expr, operator: ast.cmpop) -> bool:
    """Return whether a comparison decides what the text is, and not only what it contains."""
    if isinstance(operator, ast.Eq | ast.NotEq):
        return isinstance(node, ast.Constant) and bool(node.value)
    return not (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _list_names(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id


# -- sinks -----------------------------------------------------------------------------------------


def _describe_sinks(call: ast.Call, flow: _Flow, cell: int) -> Iterator[Reach]:
    """Yield the dangers of a call with text from a client."""
    for describe in (_describe_process, _describe_code, _describe_sql, _describe_file):
        found = describe(call, flow)
        if found is not None:
            rule, parameter, reason, advice = found
            yield Reach(
                rule=rule,
                cell=cell,
                line=call.lineno,
                parameter=parameter,
                reason=reason,
                advice=advice,
            )
            return


_Found = tuple[str, str, str, str] | None


def _get(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """Return an argument of a call, by position or name."""
    for word in call.keywords:
        if word.arg in names:
            return word.value
    return call.args[position] if len(call.args) > position else None


def _describe_process(call: ast.Call, flow: _Flow) -> _Found:
    name = flow.find_name(call.func)
    if name is None:
        return _describe_shell_line(call, flow)
    command = _get(call, 0, "args", "command", "cmd")
    if name in _SHELLS or (name in _PROCESSES and _is_true(_get(call, 99, "shell"))):
        if origin := flow.find_origin(command):
            reason = f"`{origin}` becomes part of a shell's command line, so a client can run any"
            return "client-shell", origin, f"{reason} command", _SHELL_ADVICE.format(origin)
        return None
    if name in _PROCESSES and command is not None:
        return _describe_arguments(flow.find_value(command), flow)
    if name in _EXECS:
        return _describe_arguments(ast.List(call.args, ast.Load()), flow)
    return None


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _describe_arguments(command: ast.expr, flow: _Flow) -> _Found:
    """Describe text in a list of a program and its arguments."""
    if not isinstance(command, ast.List | ast.Tuple) or not command.elts:
        origin = flow.find_origin(command)
        if origin is None:
            return None
        reason = f"`{origin}` is the program that runs, so a client can run any program"
        return "client-shell", origin, reason, _SHELL_ADVICE.format(origin)
    if origin := flow.find_origin(command.elts[0]):
        reason = f"`{origin}` is the program that runs, so a client can run any program"
        return "client-shell", origin, reason, _CODE_ADVICE
    for element in command.elts[1:]:
        if isinstance(element, ast.Constant) and element.value == "--":
            return None
        origin = flow.find_origin(element)
        if origin and not (isinstance(element, ast.JoinedStr | ast.BinOp) and _has_prefix(element)):
            reason = f"a `{origin}` that begins with `-` becomes an option of the program"
            return "client-shell", origin, reason, f'Put `"--"` before `{origin}` in the list.'
    return None


def _has_prefix(node: ast.expr) -> bool:
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
    first = first.left if isinstance(first, ast.BinOp) else first
    return isinstance(first, ast.Constant) and bool(first.value)


def _describe_shell_line(call: ast.Call, flow: _Flow) -> _Found:
    """Describe ``!ls {path}``, which IPython makes a call of."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("system", "getoutput"):
        return None
    if not (isinstance(call.func.value, ast.Call) and call.args):
        return None
    if _last_name(call.func.value) != "get_ipython" or not isinstance(call.args[0], ast.Constant):
        return None
    for name in re.findall(r"\{(\w+)|\$(\w+)", str(call.args[0].value)):
        if origin := flow.find_origin(ast.Name(name[0] or name[1], ast.Load())):
            reason = f"`{origin}` becomes part of a shell's command line, so a client can run any"
            return "client-shell", origin, f"{reason} command", _SHELL_ADVICE.format(origin)
    return None


def _describe_code(call: ast.Call, flow: _Flow) -> _Found:
    name = flow.find_name(call.func)
    if name in _CODE and (origin := flow.find_origin(_get(call, 0, "source", "name"))):
        reason = f"`{origin}` becomes code, so a client can run anything"
        return "client-code", origin, reason, _CODE_ADVICE
    is_frame = isinstance(call.func, ast.Attribute) and call.func.attr in ("query", "eval")
    if name == "pandas.eval" or (is_frame and name is None):
        expression = _get(call, 0, "expr")
        origin = flow.find_origin(expression)
        if origin and (name == "pandas.eval" or _is_frame_query(call, expression, flow)):
            reason = f"`{origin}` becomes part of an expression that pandas evaluates"
            advice = _QUERY_ADVICE.format(origin, origin)
            return "client-query", origin, reason, advice
    return None


def _is_frame_query(call: ast.Call, expression: ast.expr | None, flow: _Flow) -> bool:
    """Return whether `.query(...)` is certainly that of a DataFrame."""
    assert isinstance(call.func, ast.Attribute)
    fixed = " ".join(_list_fixed(flow.find_value(expression) if expression else None))
    if _SQL_WORDS.search(fixed):
        return False
    receiver = call.func.value
    if call.func.attr == "query" and fixed and _COMPARISON.search(fixed):
        return not _CONNECTION.search(_last_name(receiver) or "")
    return _is_frame(receiver, flow)


def _is_frame(node: ast.expr, flow: _Flow) -> bool:
    """Return whether a value is certainly a DataFrame: by its name, or by what made it."""
    for _ in range(_MAX_STEPS):
        if isinstance(node, ast.Name | ast.Attribute) and _FRAME.search(_last_name(node) or ""):
            return True
        if isinstance(node, ast.Call):
            name = flow.find_name(node.func)
            if name is not None:
                return bool(_FRAME_MAKERS.match(name))
            node = node.func
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Name) and flow.find_value(node) is not node:
            node = flow.find_value(node)
        else:
            return False
    return False


def _list_fixed(node: ast.expr | None) -> Iterator[str]:
    """Yield the fixed texts within an expression."""
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _describe_sql(call: ast.Call, flow: _Flow) -> _Found:
    name = flow.find_name(call.func)
    if name in _SQL_FUNCTIONS:
        statement = _get(call, 0, "sql", "query")
    elif name is None and isinstance(call.func, ast.Attribute) and call.func.attr in _SQL_METHODS:
        statement = _get(call, 0, "sql", "query", "statement", "operation")
    else:
        return None
    origin = flow.find_origin(statement)
    if origin is None or statement is None:
        return None
    fixed = " ".join(_list_fixed(flow.find_value(statement)))
    has_words = bool(_SQL_WORDS.search(fixed))
    if name is None and not has_words and not _is_connection(call.func, flow):
        return None
    if has_words:
        reason = f"`{origin}` becomes part of a SQL statement, so a client can change what it does"
        return "client-sql", origin, reason, _SQL_ADVICE.format(origin)
    reason = f"`{origin}` is a SQL statement, so a client can read and change all tables"
    advice = (
        "Offer the questions as tools with parameters, or open the database read-only "
        '(`sqlite3.connect("file:data.db?mode=ro", uri=True)`) and ignore this rule.'
    )
    return "client-sql", origin, reason, advice


def _is_connection(func: ast.expr, flow: _Flow) -> bool:
    assert isinstance(func, ast.Attribute)
    if func.attr in ("exec_driver_sql", "executescript", "executemany", "read_sql"):
        return True
    root = find_root(func.value) or ""
    value = flow.find_value(func.value)
    name = flow.find_name(value.func) if isinstance(value, ast.Call) else None
    if name is not None and _CONNECTS.match(name):
        return True
    inner = value.func if isinstance(value, ast.Call) else None
    is_cursor = isinstance(inner, ast.Attribute) and inner.attr in ("cursor", "connect", "begin")
    return is_cursor or bool(_CONNECTION.search(_last_name(func.value) or root))


def _describe_file(call: ast.Call, flow: _Flow) -> _Found:
    name = flow.find_name(call.func)
    path: ast.expr | None = None
    if name is not None and (name in _FILES or _READS.fullmatch(name)):
        path = _get(
            call, 0, "file", "filepath_or_buffer", "path", "io", "source", "fname", "filename"
        )
    elif name is None and isinstance(call.func, ast.Attribute):
        if call.func.attr in _FILE_METHODS and _is_path(call.func.value, flow):
            path = call.func.value
        elif call.func.attr in _EXPORTS:
            path = _get(call, 0, "path_or_buf", "path", "fname", "excel_writer")
    origin = flow.find_origin(path)
    if origin is None:
        return None
    reason = f"`{origin}` says which file is opened, so a client can name any file of yours"
    return "client-path", origin, reason, _FILE_ADVICE.format(origin)


def _is_path(node: ast.expr, flow: _Flow) -> bool:
    """Return whether a value is a path: its methods have common names."""
    value = flow.find_value(node)
    for each in ast.walk(value):
        if isinstance(each, ast.Call) and flow.find_name(each.func) == "pathlib.Path":
            return True
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div):
            return True
    # A parameter of type Path.
    return isinstance(node, ast.Name) and node.id in flow.paths
