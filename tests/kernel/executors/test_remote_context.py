"""The context of a worker, beside that of the kernel."""

import asyncio
import inspect

import pytest

from mcp_notebook import Context
from mcp_notebook.kernel.executors.remote_context import (
    Channel,
    ProgressSender,
    RemoteContext,
    WorkerCancelled,
)


class Collector(Channel):
    """Takes what is sent."""

    def __init__(self):
        self.sent, self.is_over = [], False

    def send(self, *message):
        self.sent.append(message)

    def is_withdrawn(self):
        return self.is_over


@pytest.fixture
def channel():
    return Collector()


@pytest.fixture
def report_every(monkeypatch):
    """Set after how many seconds a report of progress may follow another one."""

    def report_every(seconds):
        # Where a class that was pickled by value is read again in its own process, its methods
        # have copies of the module's variables from then on.
        variables = ProgressSender.__call__.__globals__
        monkeypatch.setitem(variables, "PROGRESS_INTERVAL", seconds)

    return report_every


@pytest.fixture
def context(channel, report_every):
    report_every(0)
    return RemoteContext("train", channel, wants_progress=True)


def test_it_has_everything_that_the_kernels_has():
    names = {name for name in dir(Context) if not name.startswith("_")}
    assert names <= {name for name in dir(RemoteContext()) if not name.startswith("_")}
    for name in ("log", "progress", "track", "raise_if_cancelled"):
        theirs, ours = (inspect.signature(getattr(kind, name)) for kind in (Context, RemoteContext))
        assert list(theirs.parameters) == list(ours.parameters)
    assert repr(RemoteContext()) == repr(Context())
    assert repr(RemoteContext("a")) == repr(Context("a"))


def test_progress_and_logs_are_sent(context, channel):
    assert list(context.track("ab", message="letters")) == ["a", "b"]
    context.log(3, "warning")
    assert channel.sent == [
        ("progress", 0.0, 2.0, "letters"),
        ("progress", 1.0, 2.0, "letters"),
        ("progress", 2.0, 2.0, "letters"),
        ("log", "warning", "3"),
    ]


def test_not_more_than_a_reader_can_take_is_sent(context, channel, report_every):
    report_every(1000)
    for _ in context.track(range(1000)):
        pass
    assert channel.sent == [("progress", 0.0, 1000.0, None), ("progress", 1000.0, 1000.0, None)]


def test_it_knows_when_nobody_waits_any_more(context, channel):
    assert not context.cancelled
    context.raise_if_cancelled()
    channel.is_over = True
    assert context.cancelled
    with pytest.raises(WorkerCancelled, match="The call of 'train' was stopped"):
        next(context.track([1]))


def test_what_is_wrong_is_told_as_in_the_kernel(context):
    for call in (lambda each: each.progress("1"), lambda each: each.log("a", "loud")):
        errors = []
        for each in (context, Context("train")):
            with pytest.raises((TypeError, ValueError)) as caught:
                call(each)
            errors.append(repr(caught.value))
        assert errors[0] == errors[1]


def test_nobody_can_be_asked_from_a_worker(context):
    assert not context.can_elicit
    with pytest.raises(RuntimeError, match="The tool 'train' cannot ask the user"):
        context.elicit("Really?")
    with pytest.raises(RuntimeError, match="The tool 'train' cannot ask the user"):
        asyncio.run(context.elicit_async("Really?"))
