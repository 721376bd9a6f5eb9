"""Tab completion on the lines of ``%mcp``, ``%%mcp_tool``, ``%%mcp_prompt`` and ``%%mcp_view``.

Runs on the kernel's main thread. The words of a line are pure functions of it; `MagicCompleter`
gives them to IPython.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from mcp_notebook.kernel.notebook.call_table import OPTIONS
from mcp_notebook.kernel.notebook.magic_line import list_option_words
from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS, Notebook
from mcp_notebook.kernel.schemas.schema_words import list_options
from mcp_notebook.kernel.tools.attribute_tools import find_marked_methods
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry

_WORD = re.compile(r"[\w.-]+")
_FIRST = 1_000
"""A priority above those of IPython's own matchers, which then do not run."""


class MagicCompleter:
    """Offers the words of our magics, and keeps IPython from offering Python's names beside them.

    Args:
        shell: The notebook's IPython.
        notebook: The objects that the verbs of ``%mcp`` use.
    """

    def __init__(self, shell: InteractiveShell, notebook: Notebook) -> None:
        self._shell = shell
        self._notebook = notebook

    def install(self) -> None:
        """Add the words to IPython's completions."""
        self._shell.Completer.custom_matchers.append(self.match)

    def remove(self) -> None:
        """Take them back; idempotent."""
        matchers = self._shell.Completer.custom_matchers
        if self.match in matchers:
            matchers.remove(self.match)

    @context_matcher(identifier="mcp_notebook", priority=_FIRST)
    def match(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return the completions at the cursor; none on lines of other magics."""
        line = context.text_until_cursor.lstrip()
        magic, *_ = line.split(maxsplit=1) or [""]
        fragment = re.split(r"\s", line)[-1]
        words = self._list_words(magic, line) if line != magic else []
        found = [
            SimpleCompletion(text=word, type=_name_kind(word))
            for word in words
            if word.startswith(fragment)
        ]
        return SimpleMatcherResult(
            completions=found,
            matched_fragment=fragment,
            ordered=True,
            suppress=bool(found),
        )

    def _list_words(self, magic: str, line: str) -> list[str]:
        if magic == "%mcp":
            return complete_mcp(self._notebook, line)
        if magic.lstrip("%") in ("mcp_tool", "mcp_prompt"):
            hidden = self._shell.user_ns_hidden  # IPython's own variables
            names = {n: value for n, value in self._shell.user_ns.items() if n not in hidden}
            return complete_mcp_tool(names, line)
        return ["--allow"] if magic == "%%mcp_view" else []


def _name_kind(word: str) -> str:
    """Return what a word is, in Jupyter's terms for completions."""
    if word.startswith("-") or "=" in word:
        return "param"
    return "magic" if word in VERBS else "function"


def complete_mcp(notebook: Notebook, line: str) -> list[str]:  # noqa: C901, PLR0911 - one a verb
    """Return words for a ``%mcp`` line: a verb, then tools, then a tool's arguments."""
    words = line.split()
    complete, word = (words, "") if line[-1:].isspace() else (words[:-1], words[-1])
    tools = [tool.name for tool in notebook.registry.tools]
    match complete[1:]:
        case [] | ["help"]:
            return list(VERBS)
        case ["call", name, *arguments]:
            return _list_arguments(notebook.registry, name, arguments, word)
        case ["stop"]:
            return [str(call.number) for call in notebook.invoker.calls]
        case ["log", *options] if options[-1:] != ["-n"]:
            return [*tools, *(option for option in OPTIONS if option not in options)]
        case ["call"]:
            return tools
        case ["allow"] | ["deny"]:
            return [str(number) for number in notebook.prompts.numbers]
        case ["allow", _]:
            return ["session"]
        case ["serve"]:
            return ["--stop"]
        case ["propose"]:
            return ["on", "off", "accept", "reject"]
        case ["propose", "accept" | "reject"]:
            return [str(proposal.shown.number) for proposal in notebook.proposing.queue.undecided]
    return []


def _list_arguments(
    registry: ToolRegistry, name: str, arguments: list[str], word: str
) -> list[str]:
    """Return ``name=`` for each parameter that is missing; the values of one that is named."""
    tool = registry.get(name)
    schema = tool.info.input_schema if tool else {}
    # Other names work only in JSON: IPython's expansion and quoting would change them.
    names = [name for name in schema.get("properties", {}) if _WORD.fullmatch(name)]
    named, equals, _ = word.partition("=")
    if equals:
        values = _list_values(schema, named) if named in names else ()
        return [f"{named}={value}" for value in values]
    used = {argument.partition("=")[0] for argument in arguments}
    return [f"{name}=" for name in names if name not in used]


def _list_values(schema: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the values that a parameter allows, as ``%mcp call`` reads them, if it lists them."""
    for option in list_options(schema["properties"][name], schema):
        values = [True, False] if option.get("type") == "boolean" else option.get("enum", ())
        for value in values:
            if not isinstance(value, str):
                yield json.dumps(value)
            elif _WORD.fullmatch(value) and not _is_json(value):
                yield value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def complete_mcp_tool(namespace: Mapping[str, Any], line: str) -> list[str]:
    """Return words for a line of ``%mcp_tool`` or ``%%mcp_prompt``: options, then names."""
    words = line.split()
    complete, prefix = (words, "") if line[-1:].isspace() else (words[:-1], words[-1])
    takes_value = list_option_words("prompt" if "mcp_prompt" in words[0] else "tool")
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
