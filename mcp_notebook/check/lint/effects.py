"""Reads from a function's code what it changes besides its own variables.

Runs in the process of the command. Pure. Two questions have
different standards of proof. "It writes" needs one statement that certainly does; "it only reads"
needs every statement and every function that is called to be known. In between, nothing is said.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mcp_notebook.check.lint.sources import (
    Function,
    NotebookSource,
    list_assignments,
    list_imports,
)

MAX_DEPTH = 5
"""Functions of the notebook that are followed, each called by the one before."""
_CACHE = re.compile(r"cache|memo", re.IGNORECASE)
"""Names of variables that only remember results: filling them changes nothing for a client."""
_IN_PLACE = frozenset(
    ("append", "extend", "insert", "remove", "clear", "update", "add", "discard", "sort", "reverse")
)
"""Methods that change their object if their result is not used."""
_IN_PLACE_ALWAYS = frozenset(("popitem", "setdefault", "appendleft", "popleft"))
_FILE_METHODS = frozenset(
    ("write_text", "write_bytes", "mkdir", "touch", "unlink", "rmdir", "symlink_to", "hardlink_to")
)
"""Methods of paths that change files."""
_EXPORTS = frozenset(
    (
        *("to_csv", "to_parquet", "to_excel", "to_json", "to_pickle", "to_hdf", "to_feather"),
        *("to_stata", "to_netcdf", "to_zarr", "to_html", "to_latex", "to_markdown", "to_xml"),
        *("write_csv", "write_parquet", "write_json", "write_excel", "write_ipc", "savefig"),
        *("save", "write_html", "write_image"),
    )
)
"""Methods that write a file if they are given a path."""
_FILE_FUNCTIONS = frozenset(
    (
        *(
            f"os.{name}"
            for name in ("remove", "unlink", "mkdir", "makedirs", "rmdir", "removedirs")
        ),
        *(f"os.{name}" for name in ("rename", "renames", "replace", "chmod", "chown", "truncate")),
        *(f"os.{name}" for name in ("symlink", "link")),
        *(f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree", "move", "rmtree")),
        *(f"numpy.{name}" for name in ("save", "savez", "savez_compressed", "savetxt")),
        *("json.dump", "pickle.dump", "yaml.dump", "joblib.dump", "matplotlib.pyplot.savefig"),
        *("urllib.request.urlretrieve", "matplotlib.pyplot.imsave"),
    )
)
_TO_STREAM = frozenset(("json.dump", "pickle.dump", "yaml.dump", "joblib.dump"))
"""Those whose second argument is what is written to."""
_SENDERS = frozenset(
    f"{library}.{verb}"
    for library in ("requests", "httpx")
    for verb in ("post", "put", "patch", "delete")
)
_PATH_WORDS = ("path", "path_or_buf", "path_or_buffer", "fname", "excel_writer", "file", "buf")
_SQL_WRITE = re.compile(
    r"\s*(insert|update|delete|drop|create|alter|replace|truncate|merge|grant|attach)\b",
    re.IGNORECASE,
)
_SQL_METHODS = frozenset(("execute", "executemany", "executescript", "sql"))
_BUFFERS = frozenset(("io.StringIO", "io.BytesIO"))

_PURE_MODULES = frozenset(
    (
        *("math", "cmath", "statistics", "decimal", "fractions", "datetime", "collections", "re"),
        *("itertools", "functools", "operator", "string", "textwrap", "unicodedata", "difflib"),
        *("calendar", "zoneinfo", "bisect", "heapq", "typing", "dataclasses", "enum", "base64"),
        *("hashlib", "html", "numbers", "io", "uuid", "secrets", "types", "copy", "pprint"),
        *("pydantic", "scipy", "sympy", "networkx", "mcp_notebook", "altair", "seaborn"),
        *("plotly.express", "plotly.graph_objects", "sklearn.metrics", "vega_datasets", "pathlib"),
        *("numpy", "pandas", "polars", "matplotlib", "tqdm", "json", "time", "asyncio", "random"),
    )
)
"""Modules whose functions change nothing, apart from those of `_NOT_PURE`."""
_NOT_PURE = re.compile(
    r"asyncio\.(?!sleep|gather|wait_for|to_thread)|json\.dump$|io\.open|random\.(?!Random)"
    r"|numpy\.random\.(?!default_rng|Generator)|numpy\.(?:save|memmap|.*set|put|copyto|fill)"
    r"|pandas\.(?:to_|set_option|option|eval|HDFStore|ExcelWriter)|pandas\.io|polars\.(?:write|sink)"
    r"|matplotlib\.pyplot\.(?:savefig|imsave|rc|style|switch|close)|matplotlib\.(?!pyplot)"
    r"|copy\.(?!copy|deepcopy)|time\.(?!sleep|time|perf_counter|monotonic|strftime)|sympy\.init"
    r"|scipy\.io|networkx\.(?:write|add_|.*set_)|seaborn\.(?:set|load)"
    r"|pydantic\.(?!BaseModel|TypeAdapter)|heapq\.(?!nlargest|nsmallest|merge)|bisect\.insort"
    r"|operator\.(?:setitem|delitem|iadd|iconcat|methodcaller|call)|numpy\.(?:\w+\.at$|place)"
)
_NOT_PURE_BUILTINS = frozenset(
    (
        *("open", "exec", "eval", "compile", "input", "setattr", "delattr", "globals", "vars"),
        *("locals", "__import__", "breakpoint", "next", "exit", "quit", "super"),
    )
)
_READING_METHODS = frozenset(
    """
    abs absolute add_trace agg aggregate alias all annotate any apply argmax argmin argsort
    as_posix asfreq asof assign astype at_time axhline axvline bar barh between bfill bool
    boxplot capitalize casefold cast ceil center choice clip collect columns combine_first
    contains copy corr corrwith count cov cummax cummin cumprod cumsum cut date day_name decode
    describe diff difference div dot drop drop_duplicates dropna duplicated encode endswith eq
    equals errorbar ewm exists expandtab explode ffill fill_between fillna filter find findall
    finditer first flatten floor floordiv format fromkeys fullmatch ge get get_group glob grid
    group group_by groupby groups gt head height hist idxmax idxmin iloc imshow index
    infer_objects insert_layer integers interactive interpolate intersection is_dir is_file
    is_relative_to isalnum isalpha isdigit isin isna isnull isnumeric isocalendar isoformat
    isoweekday isspace issubset issuperset items iterdir iterrows itertuples join keys kurt
    kurtosis last lazy le legend len line ljust loc lower lstrip lt map mark_area mark_bar
    mark_line mark_point mask match max mean median melt merge min mod mode month_name
    most_common mul ne nlargest normal normalize notna notnull nsmallest nth nunique over
    partition pct_change permutation pie pivot pivot_table plot predict predict_proba prod
    properties quantile rank ravel read_bytes read_text reindex relative_to rename rename_axis
    repeat resample reset_index reshape resolve rfind rglob rjust rolling round rpartition
    rsplit rstrip sample scatter score search select select_dtypes sem set_axis set_index
    set_title set_xlabel set_xlim set_ylabel set_ylim shape shift shuffle size skew slice sort
    sort_index sort_values split splitlines squeeze stack standard_normal startswith stat std
    str strftime strip sub sum swapcase symmetric_difference tail take text tick_params
    tight_layout time timestamp title to_dict to_frame to_list to_numpy to_pandas to_period
    to_pydatetime to_records to_series to_string to_timestamp tolist total total_seconds track
    transform translate transpose truediv tz_convert tz_localize uniform union unique unstack
    update_layout update_traces upper value_counts values var view weekday where with_columns
    with_name with_suffix xs zfill
    """.split()  # noqa: SIM905 - a table
)
"""Methods of common values that change nothing outside the function, apart from those below."""
_OF_LOCAL_OBJECTS = frozenset(
    (
        *("add_trace", "annotate", "axhline", "axvline", "errorbar", "fill_between", "imshow"),
        *("legend", "set_title", "set_xlabel", "set_xlim", "set_ylabel", "set_ylim"),
        *("tick_params", "tight_layout", "update_layout", "update_traces"),
        *("choice", "integers", "normal", "permutation", "standard_normal", "uniform"),
    )
)
"""Those that change their figure or their random numbers: harmless unless these are shared."""
_HAND_OUT = frozenset(
    (
        *("get", "setdefault", "pop", "view", "squeeze", "ravel", "reshape", "transpose"),
        *("to_numpy", "asarray", "asanyarray", "getattr", "max", "min", "next"),
    )
)
"""Functions and methods that may return what others hold: `rows.get(key)`, `max(rows)`."""
_CALLERS = frozenset(
    (
        *("accumulate", "agg", "aggregate", "apply", "dropwhile", "filter", "filterfalse", "map"),
        *("partial", "reduce", "starmap", "takewhile", "to_thread", "transform"),
    )
)
"""Functions and methods that call what they are given first."""
_CALLED_WORDS = frozenset(("func", "function", "key"))
"""Keywords for what is called."""
_CHANGED_WORDS = frozenset(("out", "file"))
"""Keywords for what a call writes to."""
_INDEXERS = frozenset(("loc", "iloc", "at", "iat"))


@dataclass(frozen=True, kw_only=True)
class Write:
    """A statement that changes something outside its function."""

    cell: int
    line: int
    what: str
    """What it does, as the end of a sentence: "opens a file to write"."""
    is_lasting: bool
    """Whether it also lasts if the call runs in a copy of the kernel: files, say, not variables."""


@dataclass(kw_only=True)
class Effects:
    """What is known of a function."""

    writes: list[Write] = field(default_factory=list)
    is_known: bool = True
    """Whether all that it does is known; with no writes, it only reads."""


def read_effects(
    source: NotebookSource, function: Function, cell: int, *, is_method: bool = False
) -> Effects:
    """Return what a function of the notebook changes."""
    return _Reader(source, is_method=is_method).read(function, cell)


class _Reader:
    """Follows a function and those of the notebook that it calls."""

    def __init__(self, source: NotebookSource, *, is_method: bool) -> None:
        self._source = source
        self._is_method = is_method
        self._open: list[str] = []
        """The functions that are being read, outermost first."""

    def read(self, function: Function, cell: int) -> Effects:
        self._open.append(function.name)
        is_method = self._is_method and len(self._open) == 1
        scope = _Scope(
            self._source, function, is_method=is_method, is_outermost=len(self._open) == 1
        )
        effects = Effects(
            is_known=all(_is_harmless(each, scope) for each in function.decorator_list)
        )
        called = {node.func for node in _walk(function) if isinstance(node, ast.Call)}
        for node in _walk(function):
            line = _line(node, function)
            for what in _describe_change(node, scope):
                write = Write(cell=cell, line=line, what=what, is_lasting=False)
                effects.writes.append(write)
            for what in _describe_output(node, scope):
                write = Write(cell=cell, line=line, what=what, is_lasting=True)
                effects.writes.append(write)
            if not _is_known(node, scope):
                effects.is_known = False
            if isinstance(node, ast.Name):
                self._follow(node.id, effects, scope, is_called=node in called)
        self._open.pop()
        return effects

    def _follow(self, name: str, effects: Effects, scope: "_Scope", *, is_called: bool) -> None:
        """Add the effects of a function of the notebook that is called.

        One that is only named, as in ``orders.apply(send)``, may be called by others or not: then
        it is unknown what happens, unless it only reads.
        """
        known = self._source.functions.get(name)
        if known is None or name in scope.local:
            return
        if name in self._open:
            return  # recursion: its effects are being collected
        if len(self._open) > MAX_DEPTH:
            effects.is_known = False
            return
        inner = self.read(known.node, known.cell)
        if is_called:
            effects.writes += inner.writes
        effects.is_known &= inner.is_known and (is_called or not inner.writes)


class _Scope:
    """The names of a function, and what they stand for."""

    def __init__(
        self, source: NotebookSource, function: Function, *, is_method: bool, is_outermost: bool
    ) -> None:
        self._source = source
        self._is_outermost = is_outermost
        self.modules = dict(source.modules)
        for node in ast.walk(function):
            self.modules.update(list_imports(node))
        self.rebound = {
            name
            for node in ast.walk(function)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        arguments = function.args
        parameters = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *filter(None, (arguments.vararg, arguments.kwarg)),
        ]
        self.parameters = {each.arg for each in parameters}
        self.owner = parameters[0].arg if is_method and parameters else None
        stored = {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        inner = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        self.local = (stored | inner) - self.rebound
        self.nested = {
            node.name
            for node in ast.walk(function)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node is not function
        }
        self.local |= self.nested
        self.values = _list_values(function)
        self.uses_temporary_files = any(
            name.startswith("tempfile") for name in self._list_names(function)
        )

    def _list_names(self, function: Function) -> Iterator[str]:
        for node in ast.walk(function):
            if isinstance(node, ast.Name | ast.Attribute):
                name = self.find_name(node)
                if name is not None:
                    yield name

    def find_name(self, node: ast.expr) -> str | None:
        """Return the dotted name of a function of a library, or of a builtin."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.modules and node.id not in self.parameters:
            return ".".join((self.modules[node.id], *parts))
        is_builtin = not parts and node.id not in self.local and hasattr(builtins, node.id)
        return f"builtins.{node.id}" if is_builtin else None

    def is_shared(self, name: str) -> bool:
        """Return whether a name certainly stands for an object of the notebook."""
        if name == self.owner:
            return True
        if name in self.local:
            values = self.values.get(name, [])
            return (
                len(values) == 1
                and isinstance(values[0], ast.Name)
                and (
                    values[0].id not in self.local
                    and values[0].id not in self.modules
                    and not hasattr(builtins, values[0].id)
                )
            )
        return name not in self.modules and not hasattr(builtins, name)

    def find_original(self, name: str) -> str:
        """Return the notebook's name of a shared object."""
        value = self.values.get(name, [None])[0] if name in self.local else None
        return value.id if isinstance(value, ast.Name) else name

    def is_fresh(self, name: str) -> bool:
        """Return whether a name certainly stands for an object that the function made."""
        if name not in self.local or name == self.owner:
            return False
        if name in self.parameters and not self._is_outermost:
            return False  # whatever the caller has
        values = self.values.get(name)
        if name in self.parameters and not values:
            return True  # a client's value: made for this call
        return bool(values) and all(self.makes_object(value) for value in values or ())

    def makes_object(self, value: ast.expr) -> bool:
        """Return whether an expression certainly makes a new object."""
        if isinstance(value, ast.IfExp):
            return self.makes_object(value.body) and self.makes_object(value.orelse)
        if isinstance(value, ast.Await):
            return self.makes_object(value.value)
        if isinstance(value, ast.Call):
            is_helper = isinstance(value.func, ast.Name) and self.is_helper(value.func.id)
            return not is_helper and _find_last_name(value.func) not in _HAND_OUT
        return isinstance(value, _LITERALS)

    def holds_only_own(self, name: str) -> bool:
        """Return whether also what a fresh object was made of is the function's."""
        return self.is_fresh(name) and all(
            self.find_name(node) is not None
            for value in self.values.get(name, ())
            for node in ast.walk(value)
            if isinstance(node, ast.Name)
        )

    def is_data(self, name: str) -> bool:
        """Return whether a name stands for data, and not for a function."""
        if name in self.local:
            return self.is_fresh(name)
        return isinstance(self._source.values.get(name), _DISPLAYS)

    def is_helper(self, name: str) -> bool:
        """Return whether a name is a function of the notebook, or one within the function."""
        return (name in self._source.functions and name not in self.local) or name in self.nested

    def is_class(self, name: str) -> bool:
        """Return whether a name is a class of the notebook whose objects are made by no code."""
        node = self._source.classes.get(name)
        return (
            node is not None
            and name not in self.local
            and not set(_list_methods(node)) & {"__new__", "__init__", "__post_init__"}
            and all(
                _is_harmless(base, self)
                or (isinstance(base, ast.Name) and base.id != name and self.is_class(base.id))
                for base in node.bases
            )
        )

    def is_method(self, name: str) -> bool:
        """Return whether a class of the notebook has a method of this name."""
        return any(name in _list_methods(node) for node in self._source.classes.values())


_LITERALS = (
    *(ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp),
    *(ast.DictComp, ast.SetComp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.GeneratorExp, ast.Call),
)


_DISPLAYS = (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.DictComp)


def _list_methods(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            yield item.name


_ITEM = ast.Yield()
"""Stands for an item of something, which may be shared or not."""


def _list_values(function: Function) -> dict[str, list[ast.expr]]:
    """Return the expressions that each name is assigned, by name."""
    values: dict[str, list[ast.expr]] = {}
    for assignment in list_assignments(function):
        value = _ITEM if assignment.is_item else assignment.value
        values.setdefault(assignment.name, []).append(value)
    return values


def _walk(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body."""
    for statement in function.body:
        yield from ast.walk(statement)


def _line(node: ast.AST, function: Function) -> int:
    return getattr(node, "lineno", function.lineno)


def _find_last_name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)


def find_root(node: ast.expr) -> str | None:
    """Return the name that attributes and items are taken of; None if a call is between."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


# -- what certainly writes -------------------------------------------------------------------------


def _describe_change(node: ast.AST, scope: _Scope) -> Iterator[str]:
    """Yield how a node changes the kernel's memory outside the function."""
    if isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from _describe_target(target, scope)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield from _describe_target(node.target, scope)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _describe_unused_call(node.value, scope)
    elif isinstance(node, ast.Call):
        yield from _describe_mutation(node, scope)


def _describe_target(target: ast.expr, scope: _Scope) -> Iterator[str]:
    if isinstance(target, ast.Name):
        if target.id in scope.rebound and not _CACHE.search(target.id):
            yield f"assigns the notebook's `{target.id}`"
        return
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _describe_target(item, scope)
        return
    root = find_root(target)
    if root is None or _CACHE.search(ast.unparse(target)):
        return
    if scope.is_shared(root):
        yield f"changes `{scope.find_original(root)}`"
    elif root in scope.modules and root not in scope.local:
        yield f"changes `{ast.unparse(target)}`"


def _describe_unused_call(call: ast.Call, scope: _Scope) -> Iterator[str]:
    """Yield what a call changes whose result nobody uses."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _IN_PLACE:
        yield from _describe_method_change(call.func, scope)


def _describe_mutation(call: ast.Call, scope: _Scope) -> Iterator[str]:
    name = scope.find_name(call.func)
    if name in ("random.seed", "numpy.random.seed"):
        yield f"sets the random state with `{ast.unparse(call.func)}()`"
    elif name in ("os.chdir", "os.putenv", "os.unsetenv") or (
        name is not None and re.fullmatch(r"os\.environ\.(?:update|pop|setdefault|clear)", name)
    ):
        yield f"changes the process with `{ast.unparse(call.func)}()`"
    elif name == "builtins.setattr" and call.args:
        root = find_root(call.args[0])
        if root is not None and scope.is_shared(root):
            yield f"changes `{scope.find_original(root)}`"
    elif isinstance(call.func, ast.Attribute) and (
        call.func.attr in _IN_PLACE_ALWAYS or _is_in_place(call)
    ):
        yield from _describe_method_change(call.func, scope)


def _is_in_place(call: ast.Call) -> bool:
    return any(
        word.arg == "inplace" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords
    )


def _describe_method_change(func: ast.Attribute, scope: _Scope) -> Iterator[str]:
    root = find_root(func.value)
    if root is not None and scope.is_shared(root) and not _CACHE.search(ast.unparse(func.value)):
        yield f"changes `{scope.find_original(root)}` with `.{func.attr}()`"


def _describe_output(node: ast.AST, scope: _Scope) -> Iterator[str]:
    """Yield how a node changes files, databases or other computers."""
    if not isinstance(node, ast.Call):
        return
    name = scope.find_name(node.func)
    if name in _SENDERS:
        yield f"sends data with `{ast.unparse(node.func)}()`"
    elif name is None and isinstance(node.func, ast.Attribute):
        yield from _describe_database(node, node.func)
        if not scope.uses_temporary_files:
            yield from _describe_file_method(node, node.func, scope)
    elif scope.uses_temporary_files:
        return
    elif name == "builtins.open":
        yield from _describe_open(node)
    elif name in _FILE_FUNCTIONS and not _takes_buffer(node, scope):
        yield f"writes files with `{ast.unparse(node.func)}()`"


def _describe_open(call: ast.Call) -> Iterator[str]:
    mode = call.args[1] if len(call.args) > 1 else None
    mode = next((word.value for word in call.keywords if word.arg == "mode"), mode)
    if isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+"):
        yield "opens a file to write"


def _describe_database(call: ast.Call, func: ast.Attribute) -> Iterator[str]:
    if func.attr == "to_sql":
        yield "writes to a database with `.to_sql()`"
    elif func.attr == "commit" and not call.args and not call.keywords:
        yield "commits to a database"
    elif func.attr in _SQL_METHODS and call.args:
        text = find_start(call.args[0])
        if text is not None and (match := _SQL_WRITE.match(text)):
            yield f"changes a database with `{match[1].upper()}`"


def _describe_file_method(call: ast.Call, func: ast.Attribute, scope: _Scope) -> Iterator[str]:
    if func.attr in _FILE_METHODS:
        yield f"changes files with `.{func.attr}()`"
    elif func.attr in _EXPORTS and _is_path(call, scope):
        yield f"writes a file with `.{func.attr}()`"


def _is_path(call: ast.Call, scope: _Scope) -> bool:
    """Return whether an export is certainly given a path, and not a buffer."""
    given = call.args[:1] or [word.value for word in call.keywords if word.arg in _PATH_WORDS]
    if not given:
        return False
    value = given[0]
    if isinstance(value, ast.Name) and len(scope.values.get(value.id, [])) == 1:
        value = scope.values[value.id][0]
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    return isinstance(value, ast.JoinedStr | ast.BinOp)


def _takes_buffer(call: ast.Call, scope: _Scope) -> bool:
    """Return whether what is written to may be a buffer in memory."""
    position = 1 if scope.find_name(call.func) in _TO_STREAM else 0
    for argument in call.args[position : position + 1]:
        if isinstance(argument, ast.Name):
            values = scope.values.get(argument.id, [])
            return any(
                isinstance(value, ast.Call) and scope.find_name(value.func) in _BUFFERS
                for value in values
            )
    return False


def find_start(node: ast.expr) -> str | None:
    """Return the fixed text at the beginning of a string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr) and node.values:
        return find_start(node.values[0])
    if isinstance(node, ast.BinOp):
        return find_start(node.left)
    if isinstance(node, ast.Call) and node.args:  # sqlalchemy.text("...")
        return find_start(node.args[0])
    return None


# -- what is known to read -------------------------------------------------------------------------


def _is_known(node: ast.AST, scope: _Scope) -> bool:
    """Return whether all that a node itself does is known to change nothing outside."""
    if isinstance(node, ast.Call):
        return _is_known_call(node, scope)
    if isinstance(node, ast.Assign | ast.Delete):
        return all(_is_own(target, scope) for target in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return _is_own(node.target, scope)
    return not isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Import | ast.ImportFrom)
        and all(_is_pure(name) for _, name in list_imports(node))
    )


def _is_own(target: ast.expr, scope: _Scope) -> bool:
    """Return whether an assignment changes only what the function made."""
    if isinstance(target, ast.Name):
        return target.id not in scope.rebound
    if isinstance(target, ast.Starred):
        return _is_own(target.value, scope)
    if isinstance(target, ast.Tuple | ast.List):
        return all(_is_own(item, scope) for item in target.elts)
    return isinstance(target, ast.Attribute | ast.Subscript) and _is_own_object(target.value, scope)


def _is_own_object(node: ast.expr, scope: _Scope) -> bool:
    """Return whether an object is one that the function made, or part of one."""
    if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
        node = node.value
    if isinstance(node, ast.Name):
        return scope.is_fresh(node.id)
    root = find_root(node)
    return root is not None and scope.holds_only_own(root)


def _is_pure(name: str) -> bool:
    is_listed = any(name == each or name.startswith(f"{each}.") for each in _PURE_MODULES)
    last = name.rpartition(".")[2]
    is_writer = name in _FILE_FUNCTIONS or last in (*_FILE_METHODS, *_EXPORTS, "rename")
    return is_listed and not is_writer and not _NOT_PURE.match(name)


def _is_harmless(node: ast.expr, scope: _Scope) -> bool:
    """Return whether a function or class of a library, or a call of one, changes nothing."""
    name = scope.find_name(node.func if isinstance(node, ast.Call) else node)
    if name is None:
        return False
    builtin = name.removeprefix("builtins.")
    return _is_pure(name) if builtin == name else builtin not in _NOT_PURE_BUILTINS


def _is_known_call(call: ast.Call, scope: _Scope) -> bool:
    given = [*call.args, *(word.value for word in call.keywords)]
    if not all(_is_known_reference(each, scope) for each in _unpack(given)):
        return False
    if not all(_is_known_function(each, scope) for each in _unpack(_list_called(call))):
        return False
    if scope.find_name(call.func) is not None:
        return _is_harmless(call, scope) and not _CHANGED_WORDS & _list_words(call)
    if isinstance(call.func, ast.Attribute):
        return _is_known_method(call, call.func, scope)
    return isinstance(call.func, ast.Name) and (
        scope.is_helper(call.func.id) or scope.is_class(call.func.id)
    )


def _list_words(call: ast.Call) -> set[str | None]:
    return {word.arg for word in call.keywords}


def _unpack(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yield what expressions contain that are lists or dicts, and the others."""
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from _unpack(node.elts)
        elif isinstance(node, ast.Dict):
            yield from _unpack(node.values)
        else:
            yield node


def _is_known_reference(node: ast.expr, scope: _Scope) -> bool:
    """Return whether an argument is harmless if it is called, where it is of a library."""
    is_name = isinstance(node, ast.Name | ast.Attribute)
    return not is_name or scope.find_name(node) is None or _is_harmless(node, scope)


def _list_called(call: ast.Call) -> list[ast.expr]:
    """Return the arguments that a call calls."""
    first = call.args[:1] if _find_last_name(call.func) in _CALLERS else []
    return [*first, *(word.value for word in call.keywords if word.arg in _CALLED_WORDS)]


def _is_known_function(node: ast.expr, scope: _Scope) -> bool:
    """Return whether an argument that is called is known, or data.

    Functions of the notebook are followed elsewhere, those of libraries are among the references.
    """
    if isinstance(node, ast.Name | ast.Attribute) and scope.find_name(node) is not None:
        return True
    if isinstance(node, ast.Name):
        return scope.is_helper(node.id) or scope.is_class(node.id) or scope.is_data(node.id)
    if isinstance(node, ast.Attribute):
        return node.attr in _READING_METHODS and not scope.is_method(node.attr)
    return isinstance(node, ast.Lambda) or scope.makes_object(node)


def _is_known_method(call: ast.Call, func: ast.Attribute, scope: _Scope) -> bool:
    words = _list_words(call)
    if scope.is_method(func.attr) or words & _CHANGED_WORDS:
        return False
    if func.attr in (*_IN_PLACE, "pop", "shuffle") or "inplace" in words:
        return _is_own_object(func.value, scope)
    if func.attr in _OF_LOCAL_OBJECTS:
        root = find_root(func.value)
        return root is None or not scope.is_shared(root)
    if func.attr in _EXPORTS and func.attr.startswith("to_"):
        return not call.args and not words & set(_PATH_WORDS)
    return func.attr in _READING_METHODS and not _writes_with_these(call, func.attr)


def _writes_with_these(call: ast.Call, method: str) -> bool:
    """Return whether a reading method's namesake, which writes, takes these arguments."""
    words = _list_words(call)
    first = call.args[0] if call.args else None
    is_flag = isinstance(first, ast.Constant) and isinstance(first.value, bool)
    if method == "get":  # `queue.get()`
        return first is None or is_flag
    if method == "sample":  # without a seed, it draws from random numbers that others share
        return not words & {"random_state", "seed"}
    if method in ("copy", "rename"):  # `path.rename(target)`
        is_mapping = isinstance(first, ast.Dict | ast.Lambda)
        is_target = first is not None and not is_flag and not is_mapping
        return "target" in words or (is_target and not words & {"axis", "columns", "index"})
    return False
