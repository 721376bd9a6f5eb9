"""The cell under ``%%mcp_tool``: runs a cell of functions, or makes a function of a whole cell.

Runs on the kernel's main thread, inside the user's cell. Line numbers are those of the cell, the
magic's line being the first, so that errors and tracebacks point where the user looks. What becomes
of the functions is `kernel.notebook.magics`' and `kernel.tools.declared_tool`' business.

A cell as a function: its body runs as any function's, with the notebook's variables as globals. Two
things are as in a cell, and not as in a function: the value of the last expression is the result,
and a variable of the notebook can be read before the body gives it another value, as in
``df = df[df.x > 1]``. That value stays in the call; the notebook's ``df`` is what it was.
"""

import ast
import inspect
import keyword
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from types import CodeType, FunctionType
from typing import Any, TypeGuard

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.notebook.magic_line import Signature

_MAGIC = "%%mcp_tool "
_DEF = "def _"
_CELL_MAGIC = re.compile(r"\s*(%%\w+)")
_COMMENT = re.compile(r"#+ ?(.*)")


class CellSyntaxError(Exception):
    """A syntax error in a cell, shown as IPython shows that of any cell: without frames.

    Not a `SyntaxError`: of those that a magic raises, IPython shows its own frames and ours.

    Args:
        error: What Python says.
        shown: The same, as the notebook shows it.
    """

    def __init__(self, error: SyntaxError, shown: list[str]) -> None:
        super().__init__(str(error))
        self._shown = shown

    def _render_traceback_(self) -> list[str]:
        return self._shown


def run_cell(shell: InteractiveShell, head: str, body: str) -> tuple[str, ...]:
    """Run a cell in the notebook's namespace.

    Args:
        shell: The notebook's IPython.
        head: What follows the magic's name on its line.
        body: The cell below.

    Returns:
        The names of the public functions that it defines, in order.

    Raises:
        DefinitionError: It defines none, or two of one name; nothing ran.
        CellSyntaxError: It is no Python.
    """
    # Of an error in the user's cell, the traceback shows the cell and not these frames.
    __tracebackhide__ = True
    cell = _Cell(shell, head, body)
    module = cell.parse()
    names = [
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    ]
    if not names:
        raise DefinitionError(
            "The cell defines no function: `%%mcp_tool` makes tools of the functions in the cell "
            "(names that start with `_` are helpers). Write `def my_tool(): ...`, or make the "
            "whole cell one tool: `%%mcp_tool my_tool()`. (A class under `@mcp_tools` needs no "
            "magic.)"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DefinitionError(f"The cell defines `{twice[0]}` twice: give one another name.")
    for node in module.body[:-1]:
        cell.execute(ast.Module([node], []), "exec")
    last = module.body[-1]
    if (
        isinstance(last, ast.Expr) and not cell.is_silenced
    ):  # shown, as the last line of any cell is
        cell.execute(ast.Interactive([last]), "single")
    else:
        cell.execute(ast.Module([last], []), "exec")
    return tuple(names)


def make_cell_function(
    shell: InteractiveShell, signature: Signature, head: str, body: str
) -> Callable[..., Any]:
    """Make a function of a whole cell; only annotations and defaults are evaluated.

    Args:
        shell: The notebook's IPython.
        signature: Of the function.
        head: What follows the magic's name on its line, with the signature.
        body: The cell below.

    Raises:
        DefinitionError: The name is none, the signature names what does not exist, or the cell has
            nothing to run.
        CellSyntaxError: The signature or the body is no Python.
    """
    __tracebackhide__ = True
    _check_name(signature.name)
    other = _CELL_MAGIC.match(body)
    if other is not None:
        raise DefinitionError(
            f"`{other[1]}` cannot stand below `%%mcp_tool`, which takes the whole cell: leave it "
            "out, or use a line magic (`%time`, say)."
        )
    cell = _Cell(shell, head, textwrap.dedent(body))
    function = cell.signature(signature)
    module = cell.parse()
    first = module.body[0] if module.body else None
    doc = _comment(body)
    if first is not None and _is_string(first):
        doc = ast.literal_eval(first.value)
        del module.body[0]
    if not module.body:
        raise DefinitionError(
            f"`{signature.name}` has nothing to run: write its code below the line."
        )
    last = module.body[-1]
    if isinstance(last, ast.Expr) and not cell.is_silenced:
        module.body[-1] = ast.copy_location(ast.Return(last.value), last)
    function.body = module.body
    made = cell.function(function)
    made.__doc__ = doc
    return made


def _check_name(name: str) -> None:
    if name.isidentifier() and not keyword.iskeyword(name):
        return
    better = re.sub(r"\W+", "_", name).strip("_") or "my_tool"
    if keyword.iskeyword(better) or not better.isidentifier():
        better = f"tool_{better}"
    raise DefinitionError(
        f"{name!r} cannot be a function's name in Python: write `{better}(...)`, and "
        "`--name` for another name for clients."
    )


def _is_string(statement: ast.stmt) -> TypeGuard[ast.Expr]:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _comment(body: str) -> str | None:
    """Return the text of the comment that a cell begins with."""
    lines = []
    for line in body.strip().splitlines():
        comment = _COMMENT.fullmatch(line.strip())
        if comment is None:
            break
        lines.append(comment[1])
    return "\n".join(lines).strip() or None


class _Cell:
    """The source of a cell under the magic's line, and what is compiled of it."""

    def __init__(self, shell: InteractiveShell, head: str, body: str) -> None:
        self._shell = shell
        above = head.splitlines() or [""]
        # Lines that only keep the numbers right; what IPython's own syntax means is put in.
        source = shell.transform_cell("#\n" * len(above) + body)
        lines = source.splitlines(keepends=True)[len(above) :]
        self._source = source
        shown = f"{_MAGIC}{head}".rstrip() + "\n" + "".join(lines)
        self._filename = shell.compile.cache(shown, _cell_number(shell), raw_code=shown)

    @property
    def is_silenced(self) -> bool:
        """Whether it ends with a semicolon."""
        return bool(DisplayHook.semicolon_at_end_of_expression(self._source))

    def parse(self) -> ast.Module:
        __tracebackhide__ = True
        try:
            module = self._shell.compile.ast_parse(self._source, filename=self._filename)
        except SyntaxError as error:
            raise self._shown(error) from None
        return self._shell.transform_ast(module)  # type: ignore[no-any-return]

    def signature(self, signature: Signature) -> ast.FunctionDef:
        """Return the definition that a signature begins, without a body."""
        __tracebackhide__ = True
        source = f"{_DEF}{signature.rest}: ..."
        moved = len(_MAGIC) + signature.column + len(signature.name) - len(_DEF)
        try:
            module = ast.parse(source, self._filename)
        except SyntaxError as error:
            for row, column in (("lineno", "offset"), ("end_lineno", "end_offset")):
                if getattr(error, row) == 1 and getattr(error, column):
                    setattr(error, column, getattr(error, column) + moved)
            raise self._shown(error) from None
        (function,) = module.body
        assert isinstance(function, ast.FunctionDef)
        _move(module, moved)
        function.name = signature.name
        return function

    def function(self, definition: ast.FunctionDef) -> FunctionType:
        """Return the function of a definition, which sees the notebook's variables."""
        __tracebackhide__ = True
        name = definition.name
        node: ast.FunctionDef | ast.AsyncFunctionDef = definition
        if _awaits(definition.body):
            node = ast.AsyncFunctionDef(**dict(ast.iter_fields(definition)))
            ast.copy_location(node, definition)
        module = ast.Module([node], [])
        local = _locals(self._compile(module, "exec"), name)
        node.body = [*_initialised(local), *node.body]
        code = self._compile(module, "exec")
        made: dict[str, Any] = {}
        try:
            exec(code, self._shell.user_ns, made)  # noqa: S102 - the user's own cell
        except NameError as error:
            if not _raised_in(error, self._filename):
                raise
            raise DefinitionError(
                f"`{name}`: the signature names `{error.name}`, which is not defined (yet): run "
                "the cell that defines or imports it first."
            ) from None
        function = made[name]
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
            raise self._shown(error) from None
        return code

    def _shown(self, error: SyntaxError) -> CellSyntaxError:
        error.filename = self._filename
        return CellSyntaxError(
            error, self._shell.SyntaxTB.structured_traceback(type(error), error, [])
        )


def _cell_number(shell: InteractiveShell) -> int:
    """Return the number in the prompt of the cell that runs, for its tracebacks.

    IPython counts a cell before it runs it or after, as versions go; all keep its input before.
    """
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def _move(tree: ast.AST, columns: int) -> None:
    """Move what stands on the first line to the right."""
    for node in ast.walk(tree):
        for row, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            if getattr(node, row, None) == 1:
                setattr(node, column, getattr(node, column) + columns)


def _awaits(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether code has an ``await`` of its own, not of a function in it."""
    for node in nodes:
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if isinstance(node, ast.comprehension) and node.is_async:
            return True
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not inner and _awaits(ast.iter_child_nodes(node)):
            return True
    return False


def _locals(module: CodeType, name: str) -> Sequence[str]:
    """Return the variables that a function in a module's code sets, without its parameters."""
    (code,) = (
        item for item in module.co_consts if isinstance(item, CodeType) and item.co_name == name
    )
    given = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    count = code.co_argcount + code.co_kwonlyargcount
    count += sum(bool(code.co_flags & flag) for flag in given)
    parameters = code.co_varnames[:count]
    local = dict.fromkeys([*code.co_varnames[count:], *code.co_cellvars])
    return [item for item in local if item not in parameters and item.isidentifier()]


def _initialised(names: Sequence[str]) -> list[ast.stmt]:
    """Return code that gives variables the values that they have in the notebook."""
    lines = (f"if {name!r} in globals(): {name} = globals()[{name!r}]" for name in names)
    body = ast.parse("\n".join(lines)).body
    for node in chain.from_iterable(map(ast.walk, body)):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = 1
    return body


def _raised_in(error: BaseException, filename: str) -> bool:
    """Tell whether an exception comes from a file's own code, not from what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == filename
