"""What the gates let through: how deep and how many arguments may be, and whose kernel starts.

The other gates: test_call_starter.py, tests/e2e/test_tokens.py and tests/bridge/consent.
"""

from types import SimpleNamespace

import anyio
import pytest

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import ExpectedKernel, Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.calls.gates import Gates, ToolCall, check_size
from mcp_notebook.errors import InvalidArguments, KernelGone, NotStarted
from mcp_notebook.settings.limits import DEFAULT_LIMITS
from mcp_notebook.wire.messages import ToolInfo


def count(value):
    """Return depth, and number of values and names, as a reader of the documentation would."""
    if not isinstance(value, dict | list):
        return 0, 0
    items = value.values() if isinstance(value, dict) else value
    inner = [count(item) for item in items]
    names = len(value) if isinstance(value, dict) else 0
    depth = 1 + max((depth for depth, _ in inner), default=0)
    return depth, max(len(value), 1) + names + sum(number for _, number in inner)


def refusal(arguments, **limits):
    """Return why arguments are refused, or None."""
    try:
        check_size(arguments, **limits)
    except InvalidArguments as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("arguments", "depth", "number"),
    [
        ({}, 1, 1),
        ({"a": 1}, 1, 2),
        ({"a": "[{,:", "b": None}, 1, 4),
        ({"a": [1, 2, 3]}, 2, 5),
        ({"a": []}, 2, 3),
        ({"a": {"b": [{}]}}, 4, 6),
    ],
)
def test_arguments_may_be_as_deep_and_many_as_the_limits_say(arguments, depth, number):
    assert count(arguments) == (depth, number)
    assert refusal(arguments, deepest=depth, most=number) is None
    too_deep = refusal(arguments, deepest=depth - 1)
    assert f"nested too deeply: at most {depth - 1} levels" in too_deep
    too_many = refusal(arguments, most=number - 1)
    assert f"too many values: at most {number - 1} values and names" in too_many


def test_what_is_too_deep_and_too_much_is_found_at_any_size():
    deep = {"a": 1}
    for _ in range(150):
        deep = {"a": deep}
    many = {"a": [{}] * 600_000}
    for arguments, said in [(deep, "too deeply"), (many, "too many")]:
        assert said in refusal(arguments)


@pytest.mark.anyio
async def test_a_call_of_a_kernel_that_still_starts_waits_until_the_bridge_is_stopped():
    catalog, said = Catalog(), []
    links, tools = Links(catalog), PermittedTools(catalog)
    one = ToolInfo(name="one", input_schema={})
    links.expect([ExpectedKernel("kernel", "sums", [one])])

    async def note(progress):
        said.append(progress.message)
        links.end_calls()

    call = ToolCall(SimpleNamespace(caller=OWNER), None, {}, Listener(progress=note))
    call.found = tools.find(OWNER, "one")
    with anyio.fail_after(5), pytest.raises(NotStarted, match="The bridge was stopped before"):
        await Gates(tools, links, None, (), None, DEFAULT_LIMITS).wait_for_kernel(call)
    assert said == ["The kernel of 'sums' is starting: the call waits until it is ready."]
    with pytest.raises(KernelGone):
        links.find_link(call.entry)
