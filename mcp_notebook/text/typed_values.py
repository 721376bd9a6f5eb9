"""Values that a person types for an argument: JSON, or any other text as it is.

Pure, in every process.
"""

import json
from typing import Any

TOO_DEEP = "nested too deeply; send less deeply nested values."
"""What is wrong with JSON that Python cannot read for its depth."""


def read_typed_value(text: str) -> Any:
    """Return the value of JSON, and any other text as it is.

    Raises:
        ValueError: It is nested too deeply.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
