"""Both ends of a channel, in one process."""

from pathlib import Path

from mcp_notebook.kernel.executors import remote_context
from mcp_notebook.kernel.executors.engines import FileChannel


def test_messages_come_once_and_in_order():
    channel = FileChannel()
    worker = remote_context.FileChannel(*channel.address[1:])
    assert channel.receive() == []
    worker.send("begin")
    worker.send("progress", 1.0, None, "\u2026 a\nb")
    assert channel.receive() == [["begin"], ["progress", 1.0, None, "\u2026 a\nb"]]
    assert channel.receive() == []
    worker.send("log", "info", "c")
    assert channel.receive() == [["log", "info", "c"]]
    channel.close()


def test_half_a_message_waits_for_its_other_half():
    channel = FileChannel()
    path = Path(channel.address[1])
    path.write_text('["begin"]\n["pro', encoding="utf-8")
    assert channel.receive() == [["begin"]]
    with path.open("a", encoding="utf-8") as file:
        file.write('gress"]\n')
    assert channel.receive() == [["progress"]]
    channel.close()


def test_the_worker_notices_that_the_call_has_ended():
    channel = FileChannel()
    worker = remote_context.FileChannel(*channel.address[1:])
    assert not worker.is_withdrawn()
    channel.close()
    channel.close()
    assert worker.is_withdrawn()
    worker.send("begin")
    assert channel.receive() == []
    assert not Path(channel.address[1]).exists()
