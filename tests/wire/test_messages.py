import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_values import (
    any_text,
    frame_header,
    json_values,
    read_one,
    send,
)

from mcp_notebook.content import Text
from mcp_notebook.wire import content_blocks, messages


def test_members_of_a_newer_version_are_ignored():
    body = b'{"type": "cancel", "id": 1, "colour": "green"}'
    assert read_one([frame_header(body)])[0] == messages.Cancel(id=1)
    block = {"type": "text", "text": "a", "colour": "green"}
    result = content_blocks.unpack_result(messages.Returned(id=1, content=[block]), [])
    assert result.content == (Text("a"),)


@given(
    text=any_text,
    value=json_values(any_text),
    keyed=st.dictionaries(any_text, json_values(any_text), max_size=3),
)
def test_no_string_in_any_message_fails_to_be_sent(text, value, keyed):
    tool = messages.ToolInfo(
        name=text, title=text, description=text, input_schema=keyed, meta=keyed
    )
    for message in [
        messages.Hello(version=text, token=text),
        messages.Call(id=1, tool=text, arguments=keyed),
        messages.Cancel(id=1, reason=text),
        messages.Welcome(version=text, tools=[tool]),
        messages.Refused(message=text),
        messages.Tools(tools=[tool]),
        messages.Progress(id=1, progress=0.5, message=text),
        messages.Log(id=1, level="info", text=text),
        messages.Returned(
            id=1, content=[{"type": "text", "text": text}], structured=value, meta=keyed
        ),
        messages.Goodbye(reason=text),
    ]:
        assert type(send(message)) is type(message)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_progress_other_than_a_number_does_not_end_the_link(value):
    read = send(messages.Progress(id=1, progress=value, total=value))
    assert read == messages.Progress(id=1)


@given(
    text=any_text,
    value=json_values(any_text),
    keyed=st.dictionaries(any_text, json_values(any_text), max_size=3),
)
def test_no_string_in_a_message_about_a_task_fails_to_be_sent(text, value, keyed):
    info = messages.TaskInfo(
        id=text,
        tool=text,
        status="input_required",
        message=text,
        created=1,
        updated=2,
        version=3,
        questions={text: messages.TaskQuestion(message=text, form=keyed)},
    )
    result = messages.PackedResult(content=[{"type": "text", "text": text}], structured=value)
    for message in [
        messages.Call(id=1, tool=text, arguments={}, task_owner=text),
        messages.KeepCall(id=1, owner=text),
        messages.AskTask(id=1, task=text, owner=text, after=0),
        messages.AnswerTask(
            id=1, task=text, owner=text, answers={text: messages.TaskAnswer(content=keyed)}
        ),
        messages.CancelTask(id=1, task=text, owner=text),
        messages.TaskState(id=1, task=info, result=result),
        messages.TaskState(id=1),
    ]:
        assert type(send(message)) is type(message)
