"""The values of settings: read from options and environment variables, and checked.

Runs in every process; does not read the environment itself. The settings are defined in `settings`
and `limits`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

from mcp_notebook.errors import SettingsError

_WORDS = tuple[str, ...]
_TEXTS: Mapping[Any, type[str | Path]] = {
    str: str,
    str | None: str,
    Path: Path,
    Path | None: Path,
}
"""Types that accept any text, and what they make of it."""


def describe_variable(
    name: str,
    *,
    least: float | None = None,
    most: float | None = None,
    on: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the metadata of a field: its environment variable and the bounds of its value.

    Args:
        name: The variable.
        least: The smallest value.
        most: The largest value.
        on: The commands of which it is an option, too.
    """
    return {"env": name, "ge": least, "le": most, "on": on}


def read_docstrings(owner: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, which Python does not keep, on one line each."""
    import ast  # noqa: PLC0415 - rarely needed, and every kernel imports this module
    import inspect  # noqa: PLC0415
    from itertools import pairwise  # noqa: PLC0415

    (definition,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        item.target.id: " ".join(following.value.value.split())
        for item, following in pairwise(definition.body)
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    }


def read_values(
    settings: type[Any], env: Mapping[str, str], options: Mapping[str, Any]
) -> dict[str, tuple[Any, str]]:
    """Return the values that are set, with their sources; options take precedence.

    Args:
        settings: A dataclass whose fields have the metadata of `describe_variable`.
        env: The environment. Empty variables count as unset.
        options: Values of fields, from the command line. None counts as unset.

    Returns:
        The value and source of each field that is set. A source is an option or a variable.

    Raises:
        SettingsError: A value cannot be used.
    """
    unknown = options.keys() - {option.name for option in fields(settings)}
    if unknown:
        raise TypeError(f"{settings.__name__} has no field {', '.join(sorted(unknown))}")
    types: dict[str, Any] = {}
    values: dict[str, tuple[Any, str]] = {}
    for option in fields(settings):
        variable = option.metadata["env"]
        if options.get(option.name) is not None:
            source, value = f"--{option.name.replace('_', '-')}", options[option.name]
        elif env.get(variable) and "sets" not in option.metadata:  # limits share a variable
            source, value = variable, env[variable]
        else:
            continue
        types = types or get_type_hints(settings)  # not before one is set: takes 3 ms
        values[option.name] = (_check_value(option, types[option.name], value, source), source)
    return values


def to_text(value: object) -> str:
    """Return the text of a variable that gives a child process this value."""
    if isinstance(value, tuple):
        separator = os.pathsep if any(isinstance(part, Path) for part in value) else ","
        return separator.join(map(to_text, value))
    # A child process may run in another folder, where relative paths would differ.
    return str(value.absolute() if isinstance(value, Path) else value)


def _split(text: str, kind: Any) -> list[str]:
    if kind != _WORDS:
        return [part for part in text.split(os.pathsep) if part]
    words = [part.strip() for part in text.split(",")]
    # These words restrict something. An empty list must not mean that there is no restriction.
    if not all(words):
        raise _EmptyWord
    return words


class _EmptyWord(ValueError):
    def __init__(self) -> None:
        super().__init__("it must be one or several words, separated by commas")


def _check_value(
    option: Field[Any],
    kind: Any,
    value: object,
    source: str,
) -> object:
    if isinstance(value, str) and kind in _TEXTS:
        return _read_text(_TEXTS[kind], value, source)
    from pydantic import Field as Bounds  # noqa: PLC0415 - keeps the import cheap
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    bounds = Bounds(ge=option.metadata["ge"], le=option.metadata["le"], allow_inf_nan=False)
    has_bounds = option.metadata["ge"] is not None or option.metadata["le"] is not None
    adapter: TypeAdapter[object] = TypeAdapter(Annotated[kind, bounds] if has_bounds else kind)
    try:
        if kind == _WORDS and not isinstance(value, str):
            value = ",".join(map(str, cast("Iterable[object]", value)))
        is_list = isinstance(value, str) and isinstance(option.default, tuple)
        result = adapter.validate_python(_split(str(value), kind) if is_list else value)
        # No shell has expanded "~" in a variable from a client's configuration.
        if isinstance(result, tuple):
            return tuple(map(_expand_home, result))
        return _expand_home(result)
    # RuntimeError: "~user" with an unknown user
    except (_EmptyWord, ValidationError, RuntimeError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            # One for each kind of value that the setting takes.
            texts = (_explain_problem(each["type"], each["msg"]) for each in error.errors())
            first, *others = dict.fromkeys(texts)
            reason = ", or ".join([first, *(each.removeprefix("it must be ") for each in others)])
        text = repr(str(value)) if option.repr else "***"
        raise SettingsError(f"{source}={text} is not valid: {reason}.") from None


def _read_text(kind: type[str | Path], text: str, source: str) -> object:
    """Return a text or path, without pydantic: a bridge with no other setting never loads it."""
    try:
        return _expand_home(kind(text))
    except RuntimeError as error:  # "~user" with an unknown user
        raise SettingsError(f"{source}={text!r} is not valid: {error}.") from None


def _expand_home(value: object) -> object:
    return value.expanduser() if isinstance(value, Path) else value


def _explain_problem(kind: str, message: str) -> str:
    """Explain what a value must be, from the type and message of pydantic's error."""
    type_name = kind.partition("_")[0]
    if kind == "finite_number" or type_name == "float":
        return "it must be a number"
    if type_name == "int":
        return "it must be a whole number"
    if type_name == "bool":
        return "it must be yes or no"
    return message.replace("Input should be", "it must be")
