"""Tab completion on the lines of ``%mcp``, ``%mcp_tool`` and ``%%mcp_tool``.

Runs on the kernel's main thread. Pure: a line goes in, words come out.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.notebook.call_table import OPTIONS
from mcp_notebook.kernel.notebook.magic_line import list_option_words
from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS
from mcp_notebook.kernel.notebook.recording.recording import RECORD_OPTIONS
from mcp_notebook.kernel.tools.attribute_tools import find_marked_methods
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

_WORD = re.compile(r"[\w.-]+")


def complete_mcp(registry: ToolRegistry, line: str) -> list[str]:  # noqa: PLR0911 - one a verb
    """Return completions of a ``%mcp`` line: a verb, then tools, then a tool's arguments."""
    words = line.split()
    complete = words if line.endswith(" ") else words[:-1]
    if len(complete) <= 1:
        return list(VERBS)
    tools = [tool.name for tool in registry.tools]
    match complete[1:]:
        case ["call", name, *arguments]:
            return _list_argument_names(registry, name, arguments)
        case ["log", *_, "-n"]:
            return []
        case ["log", *options]:
            return [*tools, *(option for option in OPTIONS if option not in options)]
        case ["record", *options]:
            return [option for option in RECORD_OPTIONS if option not in options]
        case ["call"] | ["try"]:
            return tools
        case ["serve"]:
            return ["--stop"]
        case ["help"]:
            return list(VERBS)
    return []


def _list_argument_names(registry: ToolRegistry, name: str, arguments: list[str]) -> list[str]:
    tool = registry.get(name)
    names = tool.info.input_schema.get("properties", {}) if tool else ()
    used = {word.partition("=")[0] for word in arguments}
    # Other names work only in JSON: IPython's expansion and quoting would change them.
    return [f"{name}=" for name in names if _WORD.fullmatch(name) and name not in used]


def complete_mcp_tool(namespace: Mapping[str, Any], line: str) -> list[str]:
    """Return completions of a ``%mcp_tool`` or ``%%mcp_tool`` line: options, then names."""
    words = line.split()
    complete, prefix = (words, "") if line.endswith(" ") else (words[:-1], words[-1])
    takes_value = list_option_words()
    if takes_value.get(complete[-1]) or "." in prefix:
        return []
    options = [word for word in takes_value if word not in complete]
    if line.startswith("%%"):
        return options
    callables = [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and _can_be_tools(value)
    ]
    return [*callables, *options]


def _can_be_tools(value: Any) -> bool:
    is_function = callable(value) and not issubclass(type(value), type)
    return is_function or bool(find_marked_methods(type(value)))
