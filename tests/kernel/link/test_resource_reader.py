"""Contents of resources: made off the main thread, a few at a time, and never a crash."""

import queue
import sys
import threading
import time

import pytest

from mcp_notebook.content import Resource
from mcp_notebook.kernel.link.resource_reader import (
    MAX_CONTENT,
    MAX_READERS,
    MAX_WAITING,
    Read,
    ResourceReader,
)
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

    def start(self, uri, number=1, most=None, guest=""):
        return self.reader.read(
            messages.ReadResource(id=number, uri=uri, most=most, guest=guest),
            lambda *a: self.answers.put(a),
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


def test_what_is_too_large_is_not_sent(reads):
    message, attachments = reads.of(lambda: bytes(MAX_CONTENT + 1))
    assert "104,857,601 bytes, and at most 104,857,600 are sent" in message.error
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


class Held:
    """Contents that are made until they are let go, in Python."""

    def __init__(self, reads):
        self.reads = reads
        self.go_on, self.running, self.began = threading.Event(), [], queue.Queue()
        self.stopped = queue.Queue()

    def start(self, number, guest=""):
        def content():
            self.running.append(guest)
            self.began.put(guest)
            try:
                while not self.go_on.wait(0.01):
                    pass
            except BaseException:
                self.stopped.put(guest)
                raise
            finally:
                self.running.remove(guest)
            return "x"

        return self.reads.start(self.reads.keep(content), number, guest=guest)


@pytest.fixture
def held(reads):
    held = Held(reads)
    yield held
    held.go_on.set()


def test_each_guest_has_one_reader_and_one_is_kept_for_the_user(reads, held):
    for number, guest in enumerate(["a", "a", "b", "b", "c", "d", "d"]):
        held.start(number, guest)
    assert {held.began.get(timeout=30) for _ in range(3)} == {"a", "b", "c"}
    assert reads.of(lambda: "mine")[0].error is None
    assert sorted(held.running) == ["a", "b", "c"]
    held.go_on.set()
    assert all(reads.answer()[0].error is None for _ in range(7))


def test_the_user_has_all_readers_that_guests_leave_and_goes_first(reads, held):
    for number in range(MAX_READERS):
        held.start(number)
    for _ in range(MAX_READERS):
        held.began.get(timeout=30)
    order = []
    for number, guest in enumerate(["a", "b", "", ""], start=10):
        uri = reads.keep(lambda guest=guest: order.append(guest) or "x")
        reads.start(uri, number, guest=guest)
    assert order == []
    reads.reader.forget(held.start(99))  # one that waits is forgotten, and never runs
    held.go_on.set()
    assert {reads.answer()[0].id for _ in range(8)} == {0, 1, 2, 3, 10, 11, 12, 13}
    assert sorted(order) == ["", "", "a", "b"]


def test_a_read_ends_with_its_request(reads, held):
    read = held.start(1, "a")
    assert held.began.get(timeout=30) == "a"
    waiting = held.start(2, "a")
    reads.reader.forget(waiting)
    reads.reader.forget(read)
    assert held.stopped.get(timeout=30) == "a"
    held.start(3, "a")  # the guest has his reader again
    assert held.began.get(timeout=30) == "a"
    assert reads.answers.empty()


def test_code_that_catches_an_interrupt_is_interrupted_again(reads):
    began, ended = threading.Event(), threading.Event()

    def content():
        try:
            while True:
                began.set()
                time.sleep(0.01)
        except KeyboardInterrupt:
            while True:
                try:
                    time.sleep(0.01)
                except KeyboardInterrupt:
                    ended.set()
                    raise

    read = reads.start(reads.keep(content))
    assert began.wait(30)
    reads.reader.forget(read)
    assert ended.wait(30)


def test_a_read_that_takes_too_long_is_answered_and_stopped():
    answered, stopped = threading.Event(), threading.Event()

    def work():
        try:
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            stopped.set()
            raise

    read = Read("", 0.1, work, answered.set)
    thread = threading.Thread(target=read.run)
    thread.start()
    assert answered.wait(30)
    assert stopped.wait(30)
    thread.join()


def test_a_few_are_made_at_a_time_and_the_rest_waits_up_to_a_bound(reads, held):
    for number in range(MAX_READERS + MAX_WAITING):
        held.start(number)
    # The first ones may not have been taken up yet: some more fill what they leave.
    while not reads.answers.qsize():
        held.start(999)
    message, _ = reads.answer()
    assert "busy" in message.error
    assert len(held.running) <= MAX_READERS
    held.go_on.set()
    answers = [reads.answer()[0] for _ in range(MAX_READERS + MAX_WAITING)]
    assert all(answer.error is None or "busy" in answer.error for answer in answers)


def test_after_the_end_nothing_is_made_and_what_is_made_is_stopped(reads, held):
    for number in range(MAX_READERS):
        held.start(number)
        held.began.get(timeout=30)
    held.start(10)
    reads.reader.close()
    held.start(11)
    for _ in range(MAX_READERS):
        held.stopped.get(timeout=30)
    for thread in threading.enumerate():
        if thread.name == "mcp-notebook-read":
            thread.join(30)
    assert held.began.empty()


def test_asking_what_can_be_read_makes_nothing(reads):
    uri = reads.keep(lambda: sys.exit("made"))
    (info,) = reads.reader.list_resources(0, 10)
    assert (info.uri, info.name, info.mime_type, info.size) == (uri, "a.txt", "text/plain", None)
