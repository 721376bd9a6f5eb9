"""The rules for the ``_meta`` of a result that an author made by hand.

Runs in the user's kernel, on the thread of the call. Pure.
"""

from collections.abc import Mapping
from typing import Any

from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.schemas.validation_messages import shown
from mcp_notebook.meta_keys import key_problem


def check_meta(meta: Any) -> None:
    """Refuse what may not be a result's ``_meta``.

    Raises:
        InvalidResult: It is no mapping, or a key is not the author's to use.
    """
    if meta is not None and not isinstance(meta, Mapping):
        raise InvalidResult(
            "The `meta` of the `Result` that the tool returned is a dict, like "
            f"{{'com.example/source': 'sales'}}, not {shown(meta)}."
        )
    for key in meta or ():
        if problem := key_problem(key):
            raise InvalidResult(
                "The `meta` of the `Result` that the tool returned has the key "
                f"{shown(key)}, {problem}."
            )
