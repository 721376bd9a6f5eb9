"""What the author of a tool is told when a definition is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_notebook.errors import DefinitionError


def refusal_of(define: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the message, which is one line, with which this call refuses a definition."""
    with pytest.raises(DefinitionError) as raised:
        define(*arguments, **options)
    message = str(raised.value)
    assert "\n" not in message
    return message
