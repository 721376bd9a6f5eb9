"""What the gates let through: how deep and how many arguments may be, and whose kernel starts.

The other gates: test_call_starter.py, tests/e2e/test_tokens.py and tests/bridge/consent.
"""

import json
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook.bridge.access.caller import OWNER
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import ExpectedKernel, Links
from mcp_notebook.bridge.kernels.running_call import Listener
from mcp_notebook.bridge.server.calls.gates import SizeGate, StartGate, ToolCall
from mcp_notebook.bridge.server.protocol import json_spans
from mcp_notebook.errors import InvalidArguments, KernelGone, NotStarted
from mcp_notebook.settings.limits import Limits
from mcp_notebook.wire.messages import ToolInfo

TEXTS = st.text() | st.sampled_from(["[", '"]}"', "\\", '\\"', ",:[{" * 9])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def count(value):
    """Return depth, and number of values and names, as a reader of the documentation would."""
    if not isinstance(value, dict | list):
        return 0, 0
    items = value.values() if isinstance(value, dict) else value
    inner = [count(item) for item in items]
    names = len(value) if isinstance(value, dict) else 0
    depth = 1 + max((depth for depth, _ in inner), default=0)
    return depth, max(len(value), 1) + names + sum(number for _, number in inner)


async def refusal(arguments, **limits):
    """Return why arguments are refused, or None."""
    try:
        await SizeGate(Limits(**limits)).admit(ToolCall(None, None, arguments, None))
    except InvalidArguments as error:
        return str(error)
    return None


@pytest.mark.anyio
@pytest.mark.parametrize("is_text", [False, True], ids=["parsed", "text"])
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
async def test_arguments_may_be_as_deep_and_many_as_the_limits_say(
    arguments, depth, number, is_text
):
    assert count(arguments) == (depth, number)
    sent = json.dumps(arguments).encode() if is_text else arguments
    assert await refusal(sent, max_argument_depth=depth, max_argument_values=number) is None
    too_deep = await refusal(sent, max_argument_depth=depth - 1)
    assert f"nested too deeply: at most {depth - 1} levels" in too_deep
    too_many = await refusal(sent, max_argument_values=number - 1)
    assert f"too many values: at most {number - 1} values and names" in too_many


@pytest.mark.anyio
@pytest.mark.parametrize("is_text", [False, True], ids=["parsed", "text"])
async def test_what_is_too_deep_and_too_much_is_found_at_any_size(is_text):
    deep = {"a": 1}
    for _ in range(150):
        deep = {"a": deep}
    many = {"a": [{}] * 600_000}
    for arguments, said in [(deep, "too deeply"), (many, "too many")]:
        sent = json.dumps(arguments).encode() if is_text else arguments
        assert said in await refusal(sent)


@example({"a": ["x" * 40, {}], "b": '"' * 20})
@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_a_text_has_the_depth_and_the_values_of_what_it_says(arguments):
    text = json.dumps(arguments).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_spans, "_SLICE", 16)
        depth, number = anyio.run(lambda: json_spans.measure_value(text, enough=10**9))
    assert (depth, number) == count(arguments)


@pytest.mark.anyio
async def test_a_call_of_a_kernel_that_still_starts_waits_until_the_bridge_is_stopped():
    catalog, said = Catalog(), []
    links, tools = Links(catalog, on_change=lambda: None), PermittedTools(catalog)
    links.expect([ExpectedKernel("kernel", "sums", [ToolInfo(name="one", input_schema={})])])

    async def note(progress):
        said.append(progress.message)
        links.end_calls()

    call = ToolCall(SimpleNamespace(caller=OWNER), None, {}, Listener(progress=note))
    call.found = tools.find(OWNER, "one")
    with anyio.fail_after(5), pytest.raises(NotStarted, match="The bridge was stopped before"):
        await StartGate(tools, links).admit(call)
    assert said == ["The kernel of 'sums' is starting: the call waits until it is ready."]
    with pytest.raises(KernelGone):
        links.find_link(call.entry)
