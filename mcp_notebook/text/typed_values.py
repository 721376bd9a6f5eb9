"""Values that a person types for an argument: JSON, or any other text as it is.

Pure, in every process.
"""

import json
from typing import Any

from mcp_notebook.errors import InvalidArguments

TOO_DEEP = "nested too deeply; send less deeply nested values."
"""What is wrong with JSON that Python cannot read for its depth."""


def read_typed_value(text: str, name: str) -> Any:
    """Return the value of JSON, and any other text as it is.

    Args:
        text: What was typed.
        name: The argument's name, for the message.

    Raises:
        InvalidArguments: It is nested too deeply.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise InvalidArguments(f"{name}: {TOO_DEEP}") from None
