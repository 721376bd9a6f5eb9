"""The URI of a resource as its author writes it: fixed, or a template with variables.

Runs in the user's kernel, at definition; pure. Of RFC 6570, a template may have ``{name}`` (no
slash), ``{+path}`` (with slashes, at most one) and at its end ``{?first,second}`` (optional). The
variables are parameters of the resource's function. The bridge finds their values in a URI.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcp_notebook.errors import DefinitionError

MAX_URI = 500
"""Maximum characters of an author's URI."""
MAX_NAME = 64
"""Maximum characters of a name."""
VARIABLE_SCHEME = "variable"
"""The scheme of the notebook's variables."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_RESERVED = {
    "notebook": "the results of this notebook's tools",
    "skill": "skills: write `%%mcp_skill NAME`",
    VARIABLE_SCHEME: "the notebook's variables (`--inspect`)",
    "ui": "pages of live views: write `%%mcp_view NAME`",
}
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_FORMS = "`{name}`, `{+path}` for a value with slashes, and `{?first,second}` at the end"


def read_variables(uri: str) -> dict[str, bool]:
    """Return the variables of a URI, each with whether it is optional.

    Raises:
        DefinitionError: It is not a URI, or not a template that clients can use.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None:
        raise DefinitionError(
            f"{uri!r} is not a URI: begin with a scheme of your own, as in `data://orders` or "
            "`frame://{name}`."
        )
    if scheme[1].lower() in _RESERVED:
        raise DefinitionError(
            f"URIs that begin with `{scheme[1]}:` are those of {_RESERVED[scheme[1].lower()]}. "
            "Choose another scheme."
        )
    if len(uri) > MAX_URI or not uri.isprintable() or " " in uri or uri == scheme[0]:
        raise DefinitionError(
            f"{uri[:MAX_URI]!r} is not a URI: use at most {MAX_URI} printable characters without "
            "spaces, as in `data://orders`."
        )
    variables: dict[str, bool] = {}
    for expression in _EXPRESSION.finditer(uri):
        body, is_last = expression[1], expression.end() == len(uri)
        names = body.removeprefix("?").split(",") if body.startswith("?") else [body.lstrip("+")]
        if not all(map(str.isidentifier, names)) or (body.startswith("?") and not is_last):
            raise DefinitionError(
                f"`{expression[0]}` cannot be a part of the URI {uri!r}: variables are {_FORMS}."
            )
        for name in names:
            if name in variables:
                raise DefinitionError(f"The URI {uri!r} has `{name}` twice: rename one of them.")
            variables[name] = body.startswith("?")
    _check_shape(uri)
    return variables


def make_resource_name(uri: str) -> str:
    """Return a name for the resource of a cell without a function: the words of its URI."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", uri).strip("_")
    return words[:MAX_NAME].rstrip("_")


def _check_shape(uri: str) -> None:
    rest = _EXPRESSION.sub("", uri)
    if "{" in rest or "}" in rest:
        raise DefinitionError(f"A brace in the URI {uri!r} has no partner: write {_FORMS}.")
    if re.search(r"\}\{(?!\?)", uri) or uri.count("{+") > 1:
        raise DefinitionError(
            f"The values in {uri!r} could not be told apart: put text such as `/` between two "
            "variables, and use `{+path}` once."
        )


def check_parameters(name: str, uri: str, schema: Mapping[str, Any]) -> None:
    """Check that the variables of a URI are the parameters of the resource's function.

    Args:
        name: The resource's name, for messages.
        uri: The URI.
        schema: The schema of the function's parameters.

    Raises:
        DefinitionError: One of them is missing.
    """
    variables = read_variables(uri)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    for variable, is_optional in variables.items():
        if variable not in properties:
            raise DefinitionError(
                f"`{name}`: the URI {uri!r} has the variable `{variable}`, which is not a "
                "parameter of the function."
            )
        if is_optional and variable in required:
            raise DefinitionError(
                f"`{name}`: `{variable}` behind the `?` of {uri!r} may be missing: give the "
                "parameter a default."
            )
    for parameter in required:
        if parameter not in variables:
            raise DefinitionError(
                f"`{name}`: no client could set the parameter `{parameter}`: add "
                f"`{{{parameter}}}` to the URI {uri!r}, or give it a default."
            )
