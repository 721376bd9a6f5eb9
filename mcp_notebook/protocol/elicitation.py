"""Questions of a server to a client's user, and their answers: MCP's elicitation.

Pure. Up to 2025-11-25 a question is a request to the client, ``elicitation/create``. Since
2026-07-28 a request is answered with questions, and the client repeats it with the answers:
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, ValidationError, convert

ELICIT = "elicitation/create"


class ElicitForm(Struct, frozen=True):
    """A question with a form."""

    message: str
    requested_schema: Mapping[str, Any]
    """The JSON Schema of an object of single values."""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return {"message": self.message, "requestedSchema": self.requested_schema}

    @property
    def request(self) -> dict[str, Any]:
        """The request among others in an answer of 2026-07-28."""
        return {"method": ELICIT, "params": {"mode": "form", **self.params}}


class ElicitResult(Struct, frozen=True):
    """The user's answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None
    """The values of the form, if the user accepted it."""


class InputRequired(Struct, frozen=True):
    """The answer of 2026-07-28 to a request that needs answers of the user first."""

    questions: Mapping[str, ElicitForm]
    """By key."""
    state: str | None = None
    """What the client sends back with the answers."""

    @property
    def form(self) -> dict[str, Any]:
        """The answer as JSON."""
        requests = {key: question.request for key, question in self.questions.items()}
        form = {"resultType": "input_required", "inputRequests": requests}
        return form if self.state is None else {**form, "requestState": self.state}


def read_elicit_result(value: Any) -> ElicitResult | None:
    """Return the user's answer, or None if the value is not a valid one."""
    try:
        return convert(value, ElicitResult)
    except ValidationError:
        return None
