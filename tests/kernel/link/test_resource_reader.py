"""Contents of resources: made off the main thread, a few at a time, and never a crash."""

import queue
import sys
import threading

import pytest

from mcp_notebook.content import Resource
from mcp_notebook.kernel.link import resource_reader
from mcp_notebook.kernel.link.resource_reader import MAX_READERS, MAX_WAITING, ResourceReader
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.wire import content_blocks, messages


class Reads:
    """Reads of what is kept, and their answers."""

    def __init__(self):
        self.store = ResourceStore("k", 10**9)
        self.reader = ResourceReader(self.store)
        self.answers = queue.Queue()

    def keep(self, content):
        form = FileFormat(".txt", "text/plain", content)
        return self.store.keep(Original("a", "A", (form,), 1))[0].uri

    def start(self, uri, number=1, most=None):
        self.reader.read(
            messages.ReadResource(id=number, uri=uri, most=most), lambda *a: self.answers.put(a)
        )

    def answer(self):
        return self.answers.get(timeout=30)

    def of(self, content, most=None):
        self.start(self.keep(content), most=most)
        return self.answer()


@pytest.fixture
def reads():
    return Reads()


@pytest.mark.parametrize("data", ["text", "", "ä\x00\u2028", b"\x00\xff", b""])
def test_a_content_arrives_as_it_is(reads, data):
    message, attachments = reads.of(lambda: data)
    read = content_blocks.unpack_resource(message, attachments)
    assert read == Resource(read.uri, data, "text/plain")


def test_other_kinds_of_bytes_are_bytes(reads):
    message, attachments = reads.of(lambda: memoryview(bytearray(b"ab")))
    assert content_blocks.unpack_resource(message, attachments).data == b"ab"


def test_lone_surrogates_are_replaced(reads):
    message, attachments = reads.of(lambda: "a\ud800b")
    assert content_blocks.unpack_resource(message, attachments).data == "a\ufffdb"


class BadError(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error", [ValueError("odd"), SystemExit(1), KeyboardInterrupt(), BadError()]
)
def test_whatever_a_making_raises_is_a_sentence_and_readers_go_on(reads, error):
    def fail():
        raise error

    for _ in range(MAX_READERS + 1):
        message, attachments = reads.of(fail)
        assert type(error).__name__ in message.error
        assert "cannot be read" in message.error
        assert not message.unknown
        assert not attachments
    assert reads.of(lambda: "still")[0].error is None


def test_invalid_content_is_named(reads):
    assert "neither str nor bytes" in reads.of(lambda: 5)[0].error


def test_what_is_too_large_is_not_sent(reads, monkeypatch):
    monkeypatch.setattr(resource_reader, "MAX_CONTENT", 10)
    message, attachments = reads.of(lambda: "x" * 11)
    assert "11 bytes, and at most 10" in message.error
    assert not attachments


def test_more_than_a_client_takes_is_refused_with_a_way_out(reads):
    for content in ("x" * 11, "ä" * 6, b"x" * 11):
        message, attachments = reads.of(lambda content=content: content, most=10)
        assert "at most 10 are sent" in message.error
        assert "call TOOL --save DIR" in message.error
        assert not attachments
    assert reads.of(lambda: "x" * 10, most=10)[0].error is None


def test_what_is_known_to_be_too_large_is_not_made(reads):
    form = FileFormat(".txt", "text/plain", lambda: pytest.fail("made"), 11)
    uri = reads.store.keep(Original("a", "A", (form,), 1))[0].uri
    reads.start(uri, most=10)
    assert "11 bytes, and at most 10" in reads.answer()[0].error


def test_contents_are_made_on_threads_that_do_not_hold_up_an_exit(reads):
    made_on = []
    reads.of(lambda: made_on.append(threading.current_thread()) or "x")
    assert made_on[0] is not threading.main_thread()
    assert made_on[0].daemon


def test_a_few_are_made_at_a_time_and_the_rest_waits_up_to_a_bound(reads):
    go_on, running, most = threading.Event(), set(), []

    def content():
        running.add(threading.get_ident())
        most.append(len(running))
        go_on.wait(30)
        running.discard(threading.get_ident())
        return "x"

    uri = reads.keep(content)
    for number in range(MAX_READERS + MAX_WAITING):
        reads.start(uri, number)
    # The first ones may not have been taken up yet: some more fill what they leave.
    refused = 0
    while not refused:
        reads.start(uri, 999)
        refused = reads.answers.qsize()
    message, _ = reads.answer()
    assert "busy" in message.error
    go_on.set()
    answers = [reads.answer()[0] for _ in range(MAX_READERS + MAX_WAITING)]
    assert max(most) <= MAX_READERS
    assert all(answer.error is None or "busy" in answer.error for answer in answers)


def test_after_the_end_nothing_is_made(reads):
    go_on, made = threading.Event(), []
    blocking = reads.keep(lambda: str(go_on.wait(30)))
    other = reads.keep(lambda: made.append(1) or "x")
    for number in range(MAX_READERS):
        reads.start(blocking, number)
    reads.start(other)
    reads.reader.close()
    reads.start(other)
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "mcp-notebook-read":
            thread.join(30)
    assert made == []


def test_asking_what_can_be_read_makes_nothing(reads):
    uri = reads.keep(lambda: sys.exit("made"))
    (info,) = reads.reader.list_resources(0, 10)
    assert (info.uri, info.name, info.mime_type, info.size) == (uri, "a.txt", "text/plain", None)
