"""Which resources a cell or a call may have changed, without reading them again.

Runs on the thread of the cell or call. The rule is cheap and errs on the side of a notice too many.
A resource may have changed if code ran that names a variable of the resource's function, directly
or through functions of the notebook. Modules, classes, functions and values that cannot change,
such as numbers and text, count only if they are other ones than before.

*Limits.* A change that code makes without naming the variable is not noticed: by a thread, a timer,
another program that writes a file. Authors report such changes with `resource_changed`.
"""

import re
import threading
from collections.abc import Collection, Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from mcp_notebook.kernel.safe.libraries import get_mro
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool

_WORD = re.compile(r"[^\W\d]\w*")
_CONSTANT = frozenset({str, bytes, int, float, complex, bool, type(None), range})
"""Types whose values are compared; exactly these, since a subclass has code of its own."""
_FIXED = _CONSTANT | {frozenset, ModuleType, FunctionType, BuiltinFunctionType, type}
_MAX_FUNCTIONS = 1_000
"""Maximum functions of the notebook that are followed from one function."""
MAX_VARIABLES = 1_000
"""Maximum variables that are reported for one cell."""


def list_words(source: str) -> set[str]:
    """Return the identifiers in the source of a cell, also those in its comments and magics."""
    return set(_WORD.findall(source))


def list_names(function: Any, namespace: Mapping[str, Any]) -> set[str]:
    """Return the variables that a function names, directly or through functions of the notebook."""
    return reach(_list_own_names(function), namespace)


def reach(names: Iterable[str], namespace: Mapping[str, Any]) -> set[str]:
    """Return the variables among names, and those that the functions among them name."""
    found: set[str] = set()
    waiting = [name for name in names if name in namespace]
    followed = 0
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        value = namespace.get(name)
        if followed < _MAX_FUNCTIONS and _is_of(namespace, value):
            followed += 1
            waiting += [other for other in _list_own_names(value) if other in namespace]
    return found


def _is_of(namespace: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is a function of the notebook."""
    return type(value) is FunctionType and value.__globals__ is namespace


def _list_own_names(function: Any) -> set[str]:
    code = getattr(function, "__code__", None)
    names: set[str] = set()
    codes = [code] if isinstance(code, CodeType) else []
    while codes:
        current = codes.pop()
        names.update(current.co_names)
        codes += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
    return names


class ResourceChanges:
    """Compares the variables that resources depend on with those that code has named.

    Args:
        namespace: The notebook's variables.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._seen: dict[str, Any] = {}
        """What identifies the present values of the variables of resources, by name."""
        self._functions: dict[str, Any] = {}
        """The functions of the resources, by the resources' names."""
        self._watched: frozenset[str] | None = None
        """The variables that were watched before; None: none ever were."""
        self._lock = threading.Lock()

    def watch(self, names: Collection[str]) -> None:
        """Remember the present values of variables, to notice each later change; once."""
        with self._lock:
            if self._watched is None:
                self._watched = frozenset(names)
                self._seen |= {name: self._identify(name) for name in names}

    def find_changed(
        self,
        resources: Collection[DeclaredTool],
        words: Collection[str],
        watched: Collection[str] = (),
    ) -> tuple[list[str], list[str]]:
        """Return the resources and the variables that code may have changed.

        Args:
            resources: The notebook's resources.
            words: The identifiers in the code.
            watched: All variables of which clients may ask, after `watch`.

        Returns:
            The names of the resources; and the variables with data that the code names, for
            templates whose arguments are names of variables, and watched ones that have changed,
            come or gone.
        """
        with self._lock:
            return self._find_changed(resources, words, frozenset(watched))

    def _find_changed(
        self,
        resources: Collection[DeclaredTool],
        words: Collection[str],
        watched: frozenset[str],
    ) -> tuple[list[str], list[str]]:
        named = reach(words, self._namespace)
        depends = {tool: list_names(tool.function, self._namespace) for tool in resources}
        needed = set().union(*depends.values(), named, watched)
        before, self._seen = self._seen, {name: self._identify(name) for name in needed}
        changed = {
            name
            for name in needed
            if (name in before and before[name] != self._seen[name])
            or (name in named and self._may_mutate(name))
        }
        if self._watched is not None:
            come_and_gone = self._watched ^ watched
            changed |= come_and_gone
            named |= watched | come_and_gone
            self._watched = watched or None
        variables = sorted(changed & named)[:MAX_VARIABLES]
        functions, self._functions = self._functions, {t.name: t.function for t in resources}
        changed_tools = [
            tool.name
            for tool, names in depends.items()
            if names & changed or functions.get(tool.name, tool.function) is not tool.function
        ]
        return changed_tools, variables

    def _identify(self, name: str) -> Any:
        value = self._namespace.get(name)
        if type(value) in _CONSTANT:
            return type(value), value
        return id(value)

    def _may_mutate(self, name: str) -> bool:
        value = self._namespace.get(name)
        # Not `isinstance`, which asks a proxy for its class.
        return _FIXED.isdisjoint(get_mro(type(value)))
