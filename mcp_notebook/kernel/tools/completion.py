"""Completes the arguments of prompts, and of templates of resources, for MCP's clients.

Checked at definition; completed on worker threads, also while a cell runs. What a client has typed
only selects values: it is compared with them and never evaluated. The values come from the
argument's type (`Literal`, `Enum`, bool), or from the author's `complete`: a list, a function, or
the name of something in the notebook, such as ``df.columns``, which is read as it is now.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.foreign_code import deadline, guard
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.kernel.schemas.schema_words import list_options
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.text.wording import suggest
from mcp_notebook.wire import messages

MAX_VALUES = 100
"""Values that MCP allows in one answer."""
MAX_READ = 100_000
"""Values that are looked at: the first ones of a longer list."""
SECONDS = 2.0
"""Time limit for the author's function and the values' own code."""


def check_complete(complete: Any, parameters: Collection[str], name: str) -> None:
    """Refuse an invalid option `complete`.

    Args:
        complete: The option.
        parameters: The declared parameters.
        name: The prompt's name.

    Raises:
        DefinitionError: It is not a mapping from parameters to sources of values.
    """
    if not isinstance(complete, Mapping):
        raise DefinitionError(
            f"`{name}`: `complete` must be a dict like `complete={{'column': 'df.columns'}}`, not "
            f"{format_value(complete)}."
        )
    for parameter, source in complete.items():
        if parameter not in parameters:
            close = suggest(str(parameter), parameters)
            hint = f"did you mean {close!r}?" if close else f"it has {', '.join(parameters)}."
            raise DefinitionError(f"`{name}`: `complete` has {parameter!r}; {hint}")
        is_name = isinstance(source, str) and all(map(str.isidentifier, source.split(".")))
        is_list = isinstance(source, Iterable) and not isinstance(source, str | bytes)
        if not (is_name or is_list or callable(source)):
            raise DefinitionError(
                f"`{name}`: the values of {parameter!r} in `complete` come from a list, a function "
                f"or a name such as 'df.columns', not from {format_value(source)}."
            )


def complete_argument(
    request: messages.Complete,
    info: messages.ToolInfo,
    source: Any,
    namespace: Mapping[str, Any],
    *,
    seconds: float = SECONDS,
) -> tuple[list[str], int]:
    """Return the values that an argument may have.

    Those that begin with what was typed come first, then those that contain it; upper and lower
    case are the same.

    Args:
        request: The parameter, what was typed so far, and the other arguments.
        info: The prompt or resource.
        source: The author's source of values; None: the parameter's type.
        namespace: The notebook's variables.
        seconds: Time limit for the author's function and the values' own code.

    Returns:
        The first of them, and how many there are.

    Raises:
        BaseException: The author's function failed, or took too long.
    """

    def list_texts(_source: object) -> list[str]:
        values: Iterable[Any]
        if source is None:
            schema = info.input_schema
            part = schema.get("properties", {}).get(request.argument, True)
            values = _list_allowed(part, schema)
        else:
            values = _read(_find(source, namespace), request.arguments)
        texts = (clean_text(str(value)) for value in islice(values, MAX_READ))
        return list(dict.fromkeys(texts))

    with deadline(seconds):
        texts = guard(list_texts, object())
    fragment = request.value.casefold()
    places = {text: text.casefold().find(fragment) for text in texts}
    found = [text for text in texts if places[text] == 0]
    found += [text for text in texts if places[text] > 0]
    return found[:MAX_VALUES], len(found)


def _list_allowed(part: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values that a part of a schema lists."""
    for option in list_options(part, schema):
        if option.get("type") == "boolean":
            yield from ("true", "false")
        elif option.get("type") == "array":
            yield from _list_allowed(option.get("items", True), schema)
        else:
            yield from option.get("enum", ())
            yield from [option["const"]] if "const" in option else ()


def _find(source: Any, namespace: Mapping[str, Any]) -> Any:
    """Return what a name in the notebook stands for; anything else is returned unchanged."""
    if not isinstance(source, str):
        return source
    variable, _, path = source.partition(".")
    return attrgetter(path)(namespace[variable]) if path else namespace[variable]


def _read(source: Any, arguments: Mapping[str, str]) -> Iterable[Any]:
    if not callable(source):
        values: Iterable[Any] = source
        return values
    function: Callable[..., Iterable[Any]] = source
    takes_arguments = bool(inspect.signature(function).parameters)
    return function(dict(arguments)) if takes_arguments else function()
