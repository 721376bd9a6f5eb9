"""Messages about tasks travel like all others, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st
from wire_values import any_text, json_values, send

from mcp_notebook.wire import messages, task_messages


@given(
    text=any_text,
    value=json_values(any_text),
    keyed=st.dictionaries(any_text, json_values(any_text), max_size=3),
)
def test_no_string_in_a_message_about_a_task_fails_to_be_sent(text, value, keyed):
    info = task_messages.TaskInfo(
        id=text,
        tool=text,
        status="input_required",
        message=text,
        created=1,
        updated=2,
        version=3,
        questions={text: task_messages.TaskQuestion(message=text, form=keyed)},
    )
    keep = task_messages.Keep(owner=text)
    result = task_messages.PackedResult(content=[{"type": "text", "text": text}], structured=value)
    for message in [
        messages.Call(id=1, tool=text, arguments={}, keep=keep),
        task_messages.KeepCall(id=1, keep=keep),
        task_messages.AskTask(id=1, task=text, owner=text, after=0),
        task_messages.AnswerTask(
            id=1, task=text, owner=text, answers={text: task_messages.TaskAnswer(content=keyed)}
        ),
        task_messages.CancelTask(id=1, task=text, owner=text),
        task_messages.TaskState(id=1, task=info, result=result),
        task_messages.TaskState(id=1),
    ]:
        assert type(send(message)) is type(message)
