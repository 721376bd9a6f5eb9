"""A function with its arguments, in the form that executors run.

Runs in the user's kernel. A thread pool calls the job in this process; other executors pickle it,
and `remote_run` runs it on a worker. The thread that waits for it reads the value with `Job.read`.
"""

import contextvars
import pickle
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Protocol

from IPython import display

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors import remote_context, remote_outputs, remote_run
from mcp_notebook.kernel.executors.pickling import (
    dump,
    pickle_call,
)
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tools import reporting

_BOOT = (
    "__import__('pickle').loads(runner)(pickled_call, address, values) "
    "if __import__('sys').version_info[:2] == python else __import__('platform').python_version()"
)
"""The expression that a worker evaluates. It compares versions before anything is unpickled: code
pickled by one Python version cannot be loaded by another."""
_OTHER_PYTHON = (
    "The function of {name!r} cannot run on its executor's worker: the worker has Python {theirs}, "
    "the notebook has {ours}, and functions can only be sent to the same version. The user has to "
    "start the workers with Python {needed}."
)
_NOT_READ = (
    "The value that the function of {!r} returned or raised on its executor's worker cannot be "
    "read in the notebook ({}). The user has to let it return data, such as a string, a dict or a "
    "table, or install the worker's libraries in the notebook's environment."
)
_NOT_SENT_BACK = (
    "The value that the function of {!r} returned cannot be sent from its executor's worker: {}. "
    "The user has to let it return data, such as a string, a dict or a table."
)


class Channel(Protocol):
    """The kernel's end of a channel from a worker to the call that waits for it."""

    @property
    def address(self) -> tuple[str, ...]:
        """Where the worker sends messages to; it is pickled."""

    def receive(self) -> list[list[Any]]:
        """Return the messages that have arrived since the last call."""

    def close(self) -> None:
        """Stop receiving; the worker notices that the call has ended."""


class RemoteTraceback(Exception):
    """The traceback of an exception on its worker, attached as the exception's cause.

    Args:
        text: As Python prints it.
    """

    __module__ = "builtins"  # so that Python prints the class's name only

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Job:
    """A function with its arguments, to be called once.

    Args:
        name: The tool's.
        function: The tool's.
        arguments: Of the function.
        channel: From the worker to the call; None if there is none.
    """

    # No `__dict__`: executors that wrap what they run copy it to their wrapper
    # (`functools.wraps`), and would pickle its contents instead of the job.
    __slots__ = (
        "__name__",
        "__weakref__",
        "_arguments",
        "_context",
        "_function",
        "_pickled_call",
        "channel",
        "failure",
        "futures",
        "is_local",
        "name",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        channel: Channel | None = None,
    ) -> None:
        self.name = name
        """The tool's."""
        self.__name__ = name  # dashboards of executors show it
        self.channel = channel
        """The channel from the worker to the call."""
        self._function = function
        self._arguments = arguments
        self._context = contextvars.copy_context()
        self.is_local = False
        """Whether it was called in the process that made it."""
        self._pickled_call: bytes | None = None
        self.futures: list[Any] = []
        """The Dask futures that it uses, known once it is pickled; it is then called with their
        values, ``{"values": [...]}``."""
        self.failure: ToolError | None = None
        """The error if it could not be pickled."""

    def __getattr__(self, name: str) -> Any:
        if name == "__qualname__":  # which no slot can be called
            return self.__name__
        raise AttributeError(name)

    def __call__(self, _values: Any = None) -> Any:
        """Run the function in this process, in the context of its call."""
        self.is_local = True
        return self._context.run(self._function, **self._arguments)

    def pickle_call(self) -> bytes:
        """Pickle the function and its arguments, once.

        Raises:
            ToolError: They cannot be pickled.
        """
        if self._pickled_call is None:
            try:
                self._pickled_call = pickle_call(
                    self.name, self._function, self._arguments, self.futures
                )
            except ToolError as error:
                self.failure = error
                raise
        return self._pickled_call

    def __reduce__(self) -> tuple[type[partial[Any]], tuple[Any, ...]]:
        # The worker needs nothing but Python to unpickle this. The function itself is unpickled
        # later, inside `run_remotely`: an error while unpickling a job breaks a process pool.
        variables = {
            "runner": _pickle_runner(),
            "pickled_call": self.pickle_call(),
            "address": None if self.channel is None else self.channel.address,
            "python": sys.version_info[:2],
            "values": (),  # replaced by those that an engine calls it with
        }
        return partial, (eval, _BOOT, variables)

    def read(self, value: Any, write: Callable[[str], object]) -> Any:
        """Return the function's value, and open the figures that it left open.

        Args:
            value: The result of the executor's future.
            write: Receives the printed text; what was displayed is displayed again.

        Raises:
            ToolError: The worker cannot run the job, or its value cannot be sent or read.
            BaseException: What the function raised.
        """
        if self.is_local:
            return value
        if isinstance(value, str):
            raise ToolError(self._explain_other_python(value))
        outputs, pickled, remote_traceback = value
        for output in outputs:
            _replay(output, write)
        try:
            result, _figures = pickle.loads(pickled)  # noqa: S301 - of the author's own worker
        except Exception as error:
            raise ToolError(_NOT_READ.format(self.name, describe_error(error))) from error
        if remote_traceback is None:
            return result
        if not remote_traceback:
            raise ToolError(_NOT_SENT_BACK.format(self.name, result))
        raise result from RemoteTraceback(remote_traceback)

    def _explain_other_python(self, version: str) -> str:
        return _OTHER_PYTHON.format(
            name=self.name,
            theirs=version,
            ours=platform.python_version(),
            needed=".".join(map(str, sys.version_info[:2])),
        )


def _replay(output: Any, write: Callable[[str], object]) -> None:
    """Print or display an output of a worker."""
    if isinstance(output, str):
        write(output)
        return
    function, pickled, text = output
    try:
        if pickled is None:
            raise ValueError("too large to be sent")  # noqa: TRY301 - its text is written, as below
        args, options = pickle.loads(pickled)  # noqa: S301 - of the author's own worker
    except Exception:  # noqa: BLE001 - the notebook may lack a library that the worker has
        write(text)
    else:
        getattr(display, function)(*args, **options)


_PICKLING = threading.Lock()


def _pickle_runner() -> bytes:
    # Each pool pickles in a thread of its own. Without the lock, the first of two threads to finish
    # would unregister the modules while the other still pickles them.
    with _PICKLING:
        return _pickle_runner_once()


@cache
def _pickle_runner_once() -> bytes:
    from cloudpickle import (  # noqa: PLC0415 - only executors need it
        register_pickle_by_value,
        unregister_pickle_by_value,
    )

    modules = (reporting, remote_context, remote_outputs, remote_run)
    for module in modules:
        register_pickle_by_value(module)
    try:
        return dump(remote_run.run_remotely)
    finally:
        for module in modules:
            unregister_pickle_by_value(module)
