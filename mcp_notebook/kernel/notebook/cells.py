"""Runs the cell under ``%%mcp_tool`` or ``%%mcp_prompt``, or makes it a function.

Runs on the kernel's main thread, inside the user's cell. Line numbers are those of the cell, with
the magic's line as the first, so that errors and tracebacks point at what the user sees.

A cell that becomes a function has the notebook's variables as its globals. In two ways it still
behaves like a cell. The value of its last expression is the result. And it may read a variable of
the notebook before assigning to it, as in ``df = df[df.x > 1]``; the new value is local to the
call, so the notebook's ``df`` does not change.

Magics, ``exec`` and their like bind names that the compiler does not see (``%time x = 1``). A cell
that uses them runs with a copy of the notebook's variables as its globals and locals, made for each
call. `CallNames` lets IPython use that copy too.
"""

import ast
import inspect
import keyword
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import chain
from types import CodeType, FunctionType
from typing import Any, TypeGuard

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.calls.capture import current_capture
from mcp_notebook.kernel.notebook.magic_line import Signature
from mcp_notebook.kernel.notebook.prompt_text import PromptText
from mcp_notebook.text.terminal import print_note
from mcp_notebook.wire import messages

_NO_SIGNATURE = (
    "Below `%%mcp_prompt` alone, the cell is Python that defines functions. If it is Markdown, "
    "name the prompt on the magic's line: `%%mcp_prompt my_prompt()`."
)
_DEF = "def _"
_CELL_MAGIC = re.compile(r"\s*(%%\w+)")
_COMMENT = re.compile(r"#+ ?(.*)")
_BINDERS = frozenset({"eval", "exec", "get_ipython", "globals", "locals", "vars"})
"""Builtins by which code binds names that it does not contain; magics use ``get_ipython``."""
_INNER = "_mcp_notebook_body"
_OF_CALL = "_mcp_notebook_call"
"""Marks the globals of a call."""


class CellSyntaxError(Exception):
    """A syntax error in a cell, displayed as in any cell: without frames.

    It is not a `SyntaxError`: IPython would show its own frames and ours.

    Args:
        error: Python's error.
        traceback: The lines that the notebook displays for it.
    """

    def __init__(self, error: SyntaxError, traceback: list[str]) -> None:
        super().__init__(str(error))
        self._traceback = traceback

    def _render_traceback_(self) -> list[str]:
        return self._traceback


def run_cell(
    shell: InteractiveShell, head: str, body: str, kind: messages.Kind = "tool"
) -> tuple[str, ...]:
    """Run a cell in the notebook's namespace.

    Args:
        shell: The notebook's IPython.
        head: What follows the magic's name on its line.
        body: The cell below.
        kind: What the functions become.

    Returns:
        The names of the public functions that it defines, in order.

    Raises:
        DefinitionError: It defines no function, or two with the same name; nothing has run.
        CellSyntaxError: It is not valid Python.
    """
    __tracebackhide__ = True  # an error in the user's cell shows the cell, not these frames
    cell = _Cell(shell, head, body, kind)
    try:
        module = cell.parse()
    except CellSyntaxError:
        if kind == "prompt":
            print_note(_NO_SIGNATURE)
        raise
    names = [
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    ]
    if not names:
        raise DefinitionError(
            f"The cell defines no function that could become a {kind}; names that start with `_` "
            f"are helpers. Write `def my_{kind}(): ...`, or make the whole cell one {kind} with "
            f"`%%mcp_{kind} my_{kind}()`. (A class under `@mcp_tools` needs no magic.)"
        )
    duplicates = [name for name in names if names.count(name) > 1]
    if duplicates:
        raise DefinitionError(f"The cell defines `{duplicates[0]}` twice: rename one of them.")
    for node in module.body[:-1]:
        cell.execute(ast.Module([node], []), "exec")
    last = module.body[-1]
    if isinstance(last, ast.Expr) and not cell.is_silenced:
        # Displayed, as the value of any cell's last line is.
        cell.execute(ast.Interactive([last]), "single")
    else:
        cell.execute(ast.Module([last], []), "exec")
    return tuple(names)


def ends_with_function(shell: InteractiveShell, head: str, body: str) -> bool:
    """Return whether the last statement of a cell below ``%%mcp_resource`` defines a function.

    Raises:
        CellSyntaxError: The cell is not valid Python.
    """
    __tracebackhide__ = True
    statements = _Cell(shell, head, body, "resource").parse().body
    return bool(statements) and isinstance(statements[-1], ast.FunctionDef | ast.AsyncFunctionDef)


def make_cell_function(
    shell: InteractiveShell,
    signature: Signature,
    head: str,
    body: str,
    kind: messages.Kind = "tool",
) -> Callable[..., Any]:
    """Compile a whole cell to a function; only its annotations and defaults are evaluated.

    Args:
        shell: The notebook's IPython.
        signature: The function's name, parameters and return annotation.
        head: What follows the magic's name on its line, including the signature.
        body: The cell below.
        kind: What the function becomes.

    Raises:
        DefinitionError: The name is not an identifier, the signature uses a name that is not
            defined, or the cell has nothing to run.
        CellSyntaxError: The signature or the body is not valid Python.
    """
    __tracebackhide__ = True
    _check_name(signature.name)
    other = _CELL_MAGIC.match(body)
    if other is not None:
        raise DefinitionError(
            f"`{other[1]}` cannot follow `%%mcp_{kind}`, which takes the whole cell: remove it, or "
            "use a line magic such as `%time`."
        )
    cell = _Cell(shell, head, textwrap.dedent(body), kind)
    definition = cell.parse_signature(signature)
    module = cell.parse()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            raise DefinitionError(
                f"`{ast.unparse(node)}` cannot stand in a function, and this cell becomes one: "
                "move it to an ordinary cell above, and run that first."
            )
    first = module.body[0] if module.body else None
    doc = find_comment(body)
    is_value = kind == "resource" and len(module.body) == 1
    if first is not None and _is_string(first) and not is_value:
        doc = ast.literal_eval(first.value)
        del module.body[0]
    if not module.body:
        raise DefinitionError(
            f"`{signature.name}` has nothing to run: write its code below the magic's line."
        )
    last = module.body[-1]
    if isinstance(last, ast.Expr) and not cell.is_silenced:
        module.body[-1] = ast.copy_location(ast.Return(last.value), last)
    definition.body = module.body
    function = cell.compile_function(definition)
    function.__doc__ = doc
    return function


def make_prompt_function(
    shell: InteractiveShell, signature: Signature, head: str, body: str
) -> Callable[..., str]:
    """Make a function that fills its arguments into the Markdown of a cell.

    Args:
        shell: The notebook's IPython.
        signature: The function's name, parameters and return annotation.
        head: What follows the magic's name on its line, including the signature.
        body: The Markdown below.

    Raises:
        DefinitionError: The name is not an identifier, the signature uses a name that is not
            defined, or the text is empty or has a field that is no parameter.
        CellSyntaxError: The signature is not valid Python.
    """
    __tracebackhide__ = True
    _check_name(signature.name)
    text = body.strip()
    if not text:
        raise DefinitionError(
            f"`{signature.name}` has no text: write the prompt below the magic's line."
        )
    cell = _Cell(shell, head, body, "prompt", is_code=False)
    shape = cell.compile_function(cell.parse_signature(signature))
    parameters = inspect.signature(shape)
    template = PromptText.parse(text, parameters.parameters, signature.name)
    shape.__doc__ = text.splitlines()[0].lstrip("# ")

    @wraps(shape)
    def fill(*arguments: Any, **keywords: Any) -> str:
        bound = parameters.bind(*arguments, **keywords)
        bound.apply_defaults()
        return template.fill(bound.arguments)

    return fill


def _check_name(name: str) -> None:
    if name.isidentifier() and not keyword.iskeyword(name):
        return
    valid = re.sub(r"\W+", "_", name).strip("_") or "my_tool"
    if keyword.iskeyword(valid) or not valid.isidentifier():
        valid = f"tool_{valid}"
    raise DefinitionError(
        f"{name!r} is not a valid function name in Python: write `{valid}(...)`, and use `--name` "
        "if clients should see another name."
    )


def _is_string(statement: ast.stmt) -> TypeGuard[ast.Expr]:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def find_comment(body: str) -> str | None:
    """Return the text of the comment at the beginning of a cell, if it has one."""
    lines = []
    for line in body.strip().splitlines():
        comment = _COMMENT.fullmatch(line.strip())
        if comment is None:
            break
        lines.append(comment[1])
    return "\n".join(lines).strip() or None


class _Cell:
    """The source of a cell under the magic's line; parses, compiles and runs it."""

    def __init__(
        self,
        shell: InteractiveShell,
        head: str,
        body: str,
        kind: messages.Kind = "tool",
        *,
        is_code: bool = True,
    ) -> None:
        self._shell = shell
        self._magic = f"%%mcp_{kind} "
        above = head.splitlines() or [""]
        # Comments in place of the lines above keep the line numbers right.
        source = "#\n" * len(above) + body
        source = shell.transform_cell(source) if is_code else source
        lines = source.splitlines(keepends=True)[len(above) :]
        self._source = source
        cell = f"{self._magic}{head}".rstrip() + "\n" + "".join(lines)
        self._filename = shell.compile.cache(cell, _find_cell_number(shell), raw_code=cell)

    @property
    def is_silenced(self) -> bool:
        """Whether it ends with a semicolon, which suppresses the value of its last line."""
        return bool(DisplayHook.semicolon_at_end_of_expression(self._source))

    def parse(self) -> ast.Module:
        """Parse the cell without the magic's line."""
        __tracebackhide__ = True
        try:
            module = self._shell.compile.ast_parse(self._source, filename=self._filename)
        except SyntaxError as error:
            raise self._build_error(error) from None
        return self._shell.transform_ast(module)  # type: ignore[no-any-return]

    def parse_signature(self, signature: Signature) -> ast.FunctionDef:
        """Parse a signature to a function definition with the body ``...``."""
        __tracebackhide__ = True
        source = f"{_DEF}{signature.rest}: ..."
        columns = len(self._magic) + signature.column + len(signature.name) - len(_DEF)
        try:
            module = ast.parse(source, self._filename)
        except SyntaxError as error:
            for row, column in (("lineno", "offset"), ("end_lineno", "end_offset")):
                if getattr(error, row) == 1 and getattr(error, column):
                    setattr(error, column, getattr(error, column) + columns)
            raise self._build_error(error) from None
        (function,) = module.body
        assert isinstance(function, ast.FunctionDef)
        _shift_first_line(module, columns)
        function.name = signature.name
        return function

    def compile_function(self, definition: ast.FunctionDef) -> FunctionType:
        """Return the function of a definition, with the notebook's variables as its globals.

        Raises:
            DefinitionError: The signature uses a name that is not defined.
        """
        __tracebackhide__ = True
        name = definition.name
        node: ast.FunctionDef | ast.AsyncFunctionDef = definition
        if _has_await(definition.body):
            node = ast.AsyncFunctionDef(**dict(ast.iter_fields(definition)))
            ast.copy_location(node, definition)
        module = ast.Module([node], [])
        compiled = _find_code(self._compile(module, "exec"), name)
        parameters, local = _list_variables(compiled)
        if _binds_unseen(node.body):
            module.body = [_run_in_copy(node, compiled, parameters, local)]
        else:
            node.body = [*_initialise(local), *node.body]
        code = self._compile(module, "exec")
        definitions: dict[str, Any] = {}
        try:
            exec(code, self._shell.user_ns, definitions)  # noqa: S102 - the user's own cell
            _ = definitions[name].__annotations__  # since Python 3.14 they are evaluated only here
        except NameError as error:
            if not _is_raised_in(error, self._filename):
                raise
            raise DefinitionError(
                f"`{name}`: the signature uses `{error.name}`, which is not defined (yet): run the "
                "cell that defines or imports it first."
            ) from None
        function = definitions[name]
        assert isinstance(function, FunctionType)
        return function

    def execute(self, tree: ast.Module | ast.Interactive, mode: str) -> None:
        """Run code in the notebook's namespace."""
        __tracebackhide__ = True
        code = self._compile(tree, mode)
        exec(code, self._shell.user_global_ns, self._shell.user_ns)  # noqa: S102 - as above

    def _compile(self, tree: ast.Module | ast.Interactive, mode: str) -> CodeType:
        __tracebackhide__ = True
        try:
            code: CodeType = self._shell.compile(tree, self._filename, mode)
        except SyntaxError as error:
            raise self._build_error(error) from None
        return code

    def _build_error(self, error: SyntaxError) -> CellSyntaxError:
        error.filename = self._filename
        return CellSyntaxError(
            error, self._shell.SyntaxTB.structured_traceback(type(error), error, [])
        )


def _find_cell_number(shell: InteractiveShell) -> int:
    """Return the running cell's execution count, for its tracebacks.

    Versions of IPython differ in when they count a cell, but all store its input before running it.
    """
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def _shift_first_line(tree: ast.AST, columns: int) -> None:
    """Move the positions of all nodes on the first line to the right."""
    for node in ast.walk(tree):
        for row, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            if getattr(node, row, None) == 1:
                setattr(node, column, getattr(node, column) + columns)


def _has_await(nodes: Iterable[ast.AST]) -> bool:
    """Return whether code contains an ``await`` outside of nested functions."""
    for node in nodes:
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if isinstance(node, ast.comprehension) and node.is_async:
            return True
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not is_function and _has_await(ast.iter_child_nodes(node)):
            return True
    return False


def _find_code(module: CodeType, name: str) -> CodeType:
    """Return the code of a function in a module's code."""
    (code,) = (
        item for item in module.co_consts if isinstance(item, CodeType) and item.co_name == name
    )
    return code


def _list_variables(code: CodeType) -> tuple[Sequence[str], Sequence[str]]:
    """Return a function's parameters, and its other local variables."""
    variadic = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    number = code.co_argcount + code.co_kwonlyargcount
    number += sum(bool(code.co_flags & flag) for flag in variadic)
    parameters = code.co_varnames[:number]
    local = dict.fromkeys([*code.co_varnames[number:], *code.co_cellvars])
    return parameters, [x for x in local if x not in parameters and x.isidentifier()]


def _initialise(names: Sequence[str]) -> list[ast.stmt]:
    """Return code that initialises local variables with the notebook's values."""
    return _parse_head(f"if {name!r} in globals(): {name} = globals()[{name!r}]" for name in names)


def _parse_head(lines: Iterable[str]) -> list[ast.stmt]:
    """Parse lines of ours; they count as the cell's first."""
    body = ast.parse("\n".join(lines)).body
    for node in chain.from_iterable(map(ast.walk, body)):
        if isinstance(node, ast.stmt | ast.expr | ast.keyword):
            node.lineno = node.end_lineno = 1
    return body


# -- names that the compiler does not see ----------------------------------------------------------


def _binds_unseen(body: Iterable[ast.AST]) -> bool:
    """Return whether code may bind names that it does not contain."""
    nodes = list(chain.from_iterable(map(ast.walk, body)))
    if any(isinstance(node, ast.Global | ast.Nonlocal) for node in nodes):
        return False  # it says where its names are bound
    return any(isinstance(node, ast.Name) and node.id in _BINDERS for node in nodes)


def _run_in_copy(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    compiled: CodeType,
    parameters: Sequence[str],
    local: Sequence[str],
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a function that runs another function's body with globals of its own.

    The code of an inner function, all of whose names are global, is run as a module's is: a dict
    holds its locals. So `return`, `yield` and `await` work as in a function, and all else as in a
    cell.
    """
    inner: Any = ast.parse(f"def {_INNER}(): ...").body[0]
    inner = type(function)(**dict(ast.iter_fields(inner)))
    inner.body = [_Unannotated().visit(statement) for statement in function.body]
    if parameters or local:
        inner.body.insert(0, ast.copy_location(ast.Global([*parameters, *local]), function))
    arguments = "".join(f", {name!r}: {name}" for name in parameters)
    optimized = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
    changes = (
        f"co_flags={_INNER}.__code__.co_flags & ~{optimized}, "
        f"co_name={function.name!r}, co_qualname={function.name!r}"
    )
    # The notebook may have its own `eval`.
    builtins = "__import__('builtins')"
    copy = f"{{**{builtins}.globals(), {_OF_CALL!r}: True{arguments}}}"
    waits = bool(compiled.co_flags & inspect.CO_COROUTINE)
    run = f"{builtins}.eval({_INNER}.__code__.replace({changes}), {copy})"
    outer = ast.AsyncFunctionDef if waits else ast.FunctionDef
    fields = dict(ast.iter_fields(function))
    head = _parse_head(["__tracebackhide__ = True", f"return {'await ' * waits}{run}"])
    fields["body"] = [ast.copy_location(inner, function), *head]
    return ast.copy_location(outer(**fields), function)


class _Unannotated(ast.NodeTransformer):
    """Removes the annotations of variables, which global names cannot have."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        plain = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain, node)

    def _leave(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _leave  # noqa: N815 - `ast`'s


class CallNames:
    """Lets IPython use the names of the call that runs it, in place of the notebook's.

    ``%run``, ``%sql x <<`` and others bind names in ``shell.user_ns``. What ``capture_output`` puts
    in the place of ``shell.display_pub`` in a call is that call's, too, and a cell's that of cells.

    Args:
        shell: The notebook's IPython.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._original = type(shell)

    def install(self) -> None:
        """Give the shell a class whose names depend on the caller; on the main thread."""
        original = self._original
        own: Any = getattr(original, "user_ns", None)  # since IPython 9, a property

        def read(shell: Any) -> dict[str, Any]:
            names: dict[str, Any] = own.__get__(shell) if own else vars(shell)["user_ns"]
            return names

        def find(shell: Any) -> dict[str, Any]:
            names = read(shell)
            return names if current_capture() is None else _find_names_of_call(names)

        def replace(shell: Any, names: dict[str, Any]) -> None:
            if find(shell) is not read(shell):
                return  # what a call does, as importers of notebooks do, is undone by nobody
            if own:
                own.__set__(shell, names)
            else:
                vars(shell)["user_ns"] = names

        def find_globals(shell: Any) -> dict[str, Any]:
            names = find(shell)
            return shell.user_module.__dict__ if names is read(shell) else names

        publisher = self._shell.display_pub

        def find_publisher(shell: Any) -> Any:
            call = current_capture()
            if call is None:
                return vars(shell)["display_pub"]
            return call.streams.get("display_pub", publisher)

        def replace_publisher(shell: Any, value: Any) -> None:
            call = current_capture()
            of_caller = vars(shell) if call is None else call.streams
            of_caller["display_pub"] = value

        members = {
            "display_pub": property(find_publisher, replace_publisher),
            "user_ns": property(find, replace),
            "user_global_ns": property(find_globals),
            "__module__": original.__module__,
            "__doc__": original.__doc__,
        }
        make: Any = type(original)
        self._shell.__class__ = make(original.__name__, (original,), members)

    def remove(self) -> None:
        """Give it its own class again."""
        self._shell.__class__ = self._original


def _find_names_of_call(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the globals of the innermost cell that runs as a function; else the notebook's."""
    frame = inspect.currentframe()
    while frame is not None:
        if _OF_CALL in frame.f_globals:
            return frame.f_globals
        frame = frame.f_back
    return notebook


def _is_raised_in(error: BaseException, filename: str) -> bool:
    """Return whether an exception was raised by a file's own code, not by what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == filename
