"""Both ends of a way back, in one process."""

from pathlib import Path

from mcp_notebook.kernel.executors import remote_context
from mcp_notebook.kernel.executors.engines import FileWay


def test_messages_come_once_and_in_order():
    way = FileWay()
    worker = remote_context.FileWay(*way.address[1:])
    assert way.receive() == []
    worker.send("begin")
    worker.send("progress", 1.0, None, "\u2026 a\nb")
    assert way.receive() == [["begin"], ["progress", 1.0, None, "\u2026 a\nb"]]
    assert way.receive() == []
    worker.send("log", "info", "c")
    assert way.receive() == [["log", "info", "c"]]
    way.close()


def test_half_a_message_waits_for_its_other_half():
    way = FileWay()
    path = Path(way.address[1])
    path.write_text('["begin"]\n["pro', encoding="utf-8")
    assert way.receive() == [["begin"]]
    with path.open("a", encoding="utf-8") as file:
        file.write('gress"]\n')
    assert way.receive() == [["progress"]]
    way.close()


def test_the_worker_sees_that_nobody_waits_any_more():
    way = FileWay()
    worker = remote_context.FileWay(*way.address[1:])
    assert not worker.is_withdrawn()
    way.close()
    way.close()
    assert worker.is_withdrawn()
    worker.send("begin")
    assert way.receive() == []
    assert not Path(way.address[1]).exists()
