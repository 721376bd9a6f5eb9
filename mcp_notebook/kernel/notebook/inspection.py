"""The notebook's variables as resources, for bridges that run with ``--inspect``.

Lists run on any thread, and run no code of the values; a variable is read in a worker thread, also
while a cell runs. What a client writes is only ever looked up as a name of the notebook: there are
no attributes, no indexes and no expressions.

Private names, modules, functions and classes are not variables here, nor is what IPython and
imports from `typing` leave among them.
"""

import functools
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from urllib.parse import quote

from msgspec import structs

from mcp_notebook import meta_keys
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.results.variable_summary import Facts, find_facts, summarize
from mcp_notebook.kernel.safe.libraries import get_module_name, get_mro
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.safe.to_json import format_json
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_own_resource
from mcp_notebook.kernel.tools.options import ResourceOptions
from mcp_notebook.kernel.tools.resource_templates import VARIABLE_SCHEME
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages

NAME = "inspect/variable"
"""The template's name, for permissions; authors cannot use it, because of its slash."""
URI = f"{VARIABLE_SCHEME}://{{name}}"
MAX_LISTED = 500
"""Variables in the list; the others can be read and completed as well."""
MAX_SHOWN = 20
"""Variables in the error for an unknown name."""
TIMEOUT = "5s"
"""Time limit for reading one; also of code of values that sleeps and cannot be interrupted."""
_CODE = {
    *(ModuleType, FunctionType, BuiltinFunctionType, MethodType, type),
    type(functools.lru_cache(len)),
}
_NOT_DATA = ("typing", "typing_extensions", "mcp_notebook")
"""Packages whose objects in a notebook are imports, not data."""


class Inspection:
    """Lists and describes the variables of one notebook.

    Args:
        namespace: The notebook's variables.
        hidden: IPython's own variables among them.
    """

    def __init__(self, namespace: Mapping[str, Any], hidden: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._hidden = hidden
        self.tool = self._make_tool()
        """The template; it is not among the author's declarations."""

    def list_names(self) -> list[str]:
        """Return the names of all variables, in the order of their definition."""
        return [name for name, _ in self._list_variables()]

    def make_info(self, *, proposes: bool = False) -> messages.ToolInfo:
        """Return the template with the variables that there are now.

        Args:
            proposes: Whether it is for clients that may propose cells, not for all.
        """
        items = [
            messages.ListedItem(value=name, description=facts.text, meta=_make_meta(facts))
            for name, value in self._list_variables()[:MAX_LISTED]
            for facts in [find_facts(value)]
        ]
        return structs.replace(self.tool.info, items=items, proposes=proposes)

    def _list_variables(self) -> list[tuple[str, Any]]:
        # A copy: another thread may define variables meanwhile.
        return [pair for pair in tuple(self._namespace.items()) if self._is_variable(*pair)]

    def _is_variable(self, name: Any, value: Any) -> bool:
        if type(name) is not str or not name.isidentifier() or name.startswith("_"):
            return False
        if name in self._hidden and self._hidden[name] is value:
            return False
        return _CODE.isdisjoint(get_mro(type(value))) and _find_package(value) not in _NOT_DATA

    def _make_tool(self) -> DeclaredTool:
        def inspect(name: str) -> str:
            """A variable of the notebook: its type and shape, columns, first rows and a summary.

            Args:
                name: The variable's name.
            """
            return self._read(name)

        options = ResourceOptions(
            name=NAME,
            uri=URI,
            mime_type="application/json",
            title="Variable",
            run="thread",
            timeout=TIMEOUT,
            read_only=True,
            complete={"name": self.list_names},
        )
        return make_own_resource(inspect, options)

    def _read(self, name: str) -> str:
        value = self._namespace.get(name)
        if name not in self._namespace or not self._is_variable(name, value):
            raise InvalidArguments(self._explain_unknown(name))
        summary = {"name": name, **summarize(value, name)}
        # Each column and each row has its own line.
        members = [
            f"{format_json(key)}: {format_json(member)}".replace("\n", "\n ")
            for key, member in summary.items()
        ]
        return replace_surrogates("{\n " + ",\n ".join(members) + "\n}")

    def _explain_unknown(self, name: str) -> str:
        names = self.list_names()
        if not names:
            return f"The notebook has no variable {name!r}, and no others yet."
        close = suggest(name, names)
        if close is not None:
            return f"The notebook has no variable {name!r}. Did you mean {close!r}?"
        shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        return f"The notebook has no variable {name!r}. It has {shown}."


def make_variable_uri(name: str) -> str:
    """Return the URI of a variable, as the notebook knows it."""
    return f"{VARIABLE_SCHEME}://{quote(name, safe='')}"


def _make_meta(facts: Facts) -> dict[str, Any]:
    return {meta_keys.VARIABLE: facts.data}


def _find_package(value: Any) -> str:
    return get_module_name(type(value)).partition(".")[0]
