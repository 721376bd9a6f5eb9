"""Type hints without a schema: refused where they can be changed, any value where they cannot."""

from collections.abc import Callable

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.parameters.parameter_checks import build_validator
from mcp_notebook.kernel.schemas.parameters.parameters import Parameter

PARAMETERS = [Parameter("n", int), Parameter("convert", Callable[[int], int])]


def test_the_parameter_is_named():
    with pytest.raises(DefinitionError, match="the type hint of `convert`"):
        build_validator(PARAMETERS, "f")


def test_a_library_parameter_takes_any_value_and_its_user_is_told():
    built = build_validator(PARAMETERS, "f", is_library=True)
    assert built.schema["properties"] == {"n": {"type": "integer"}, "convert": {}}
    [note] = built.notes
    assert note.startswith("The type hint of `convert`, ")
