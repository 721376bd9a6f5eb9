"""A function with its arguments, as an executor gets it.

Runs in the user's kernel. The job is called where it was made (in a pool of threads), or pickled
and run by `remote_run` on a worker; whoever waits for it reads the value with `Job.read`.
"""

import contextvars
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Protocol

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.executors import remote_context, remote_outputs, remote_run
from mcp_notebook.kernel.executors.pickling import (
    dump,
    find_large_parts,
    format_size,
    pickle_call,
)
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tools import reporting

_BOOT = (
    "__import__('pickle').loads(runner)(pickled_call, address, trace, values) "
    "if __import__('sys').version_info[:2] == python else __import__('platform').python_version()"
)
"""What a worker evaluates: another Python must not even load the code of this one."""
_OTHER_PYTHON = (
    "The function of {name!r} cannot run on its executor's worker: the worker has Python {theirs}, "
    "the notebook has {ours}, and functions can only be sent to the same version. The user has to "
    "start the workers with Python {needed}."
)
_NOT_READ = (
    "What the function of {!r} returned or raised on its executor's worker cannot be read in the "
    "notebook ({}). The user has to have it return data, such as a text, a dict or a table, or "
    "install in the notebook what the worker has."
)
_NOT_SENT_BACK = (
    "What the function of {!r} returned cannot be sent from its executor's worker: {}. The user "
    "has to have it return data, such as a text, a dict or a table."
)


class WayBack(Protocol):
    """A way from a worker to the call that waits for it."""

    @property
    def address(self) -> tuple[str, ...]:
        """What the worker needs to know; it is pickled."""

    def receive(self) -> list[list[Any]]:
        """Return the messages that have come since the last time."""

    def close(self) -> None:
        """Stop receiving, which tells the worker that nobody waits for it."""


class OutputTaker(Protocol):
    """Takes what a function printed and displayed on its worker, in order."""

    def write(self, text: str) -> None:
        """Take a print."""

    def display(self, function: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Take a call of a function of ``IPython.display``."""


class RemoteTraceback(Exception):
    """The traceback of an exception on its worker: the exception's cause, for those who print it.

    Args:
        text: As Python prints it.
    """

    __module__ = "builtins"  # printed without where it is defined, which says nothing to users

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Job:
    """A function with its arguments, to be called once.

    Args:
        name: The tool's.
        function: The tool's.
        arguments: Of the function.
        trace: The trace that spans of the function belong to, as W3C's headers; None if the
            notebook does not use OpenTelemetry.
        way: From the worker to the call; None if there is none.
    """

    # No `__dict__`: executors that wrap what they run, as Parsl does, copy it to their wrapper
    # (`functools.wraps`), and would pickle what is in there instead of the job.
    __slots__ = (
        "__name__",
        "__weakref__",
        "_arguments",
        "_context",
        "_function",
        "_pickled_call",
        "_trace",
        "failure",
        "futures",
        "is_local",
        "name",
        "way",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        trace: Mapping[str, str] | None = None,
        way: WayBack | None = None,
    ) -> None:
        self.name = name
        """The tool's."""
        self.__name__ = name  # dashboards of executors show it
        self.way = way
        """From the worker to the call."""
        self._function = function
        self._arguments = arguments
        self._trace = dict(trace or {})
        self._context = contextvars.copy_context()
        self.is_local = False
        """Whether it was called in the process that made it."""
        self._pickled_call: bytes | None = None
        self.futures: list[Any] = []
        """Futures of Dask's that it uses, once it is pickled; it is called with
        ``{"values": [...]}``, their values in their order."""
        self.failure: ToolError | None = None
        """Why it could not be pickled."""

    def __getattr__(self, name: str) -> Any:
        if name == "__qualname__":  # which no slot can be called
            return self.__name__
        raise AttributeError(name)

    def __call__(self, _values: Any = None) -> Any:
        """Run the function here: what it prints and shows belongs to its call."""
        self.is_local = True
        return self._context.run(self._function, **self._arguments)

    def pickle_call(self) -> bytes:
        """Pickle the function and its arguments, unless that is done.

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

    def describe_size(self, advice: str) -> str:
        """Say what makes it large, and what to do.

        Args:
            advice: What to do; ``{name}`` stands for a variable.
        """
        size = len(self.pickle_call())
        parts, largest = find_large_parts(self._function, self._arguments, size)
        return (
            f"[Each call of {self.name!r} sends {format_size(size)} to its worker: {parts}. "
            f"{advice.format(name=largest or 'data')}]\n"
        )

    def __reduce__(self) -> tuple[type[partial[Any]], tuple[Any, ...]]:
        # What a worker unpickles needs nothing but Python. The function itself is unpickled later:
        # where it fails in between, a pool of processes breaks.
        variables = {
            "runner": _pickle_runner(),
            "pickled_call": self.pickle_call(),
            "address": None if self.way is None else self.way.address,
            "trace": self._trace,
            "python": sys.version_info[:2],
            "values": (),  # or those that an engine calls it with
        }
        return partial, (eval, _BOOT, variables)

    def read(self, value: Any, taker: OutputTaker) -> Any:
        """Return what the function returned, and open the figures that it left open.

        Args:
            value: The result of the executor's future.
            taker: Takes what the function printed and displayed on its worker.

        Raises:
            ToolError: The worker cannot run it, or what it gives cannot be sent or read.
            BaseException: What the function raised.
        """
        if self.is_local:
            return value
        if isinstance(value, str):
            raise ToolError(self._explain_other_python(value))
        outputs, pickled, remote_traceback = value
        for output in outputs:
            _replay(output, taker)
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


def _replay(output: Any, taker: OutputTaker) -> None:
    """Print or display what a function printed or displayed on its worker."""
    if isinstance(output, str):
        taker.write(output)
        return
    function, pickled, text = output
    try:
        if pickled is None:
            raise ValueError("too large to be sent")  # noqa: TRY301 - told by its text, as below
        args, options = pickle.loads(pickled)  # noqa: S301 - of the author's own worker
    except Exception:  # noqa: BLE001 - the notebook may lack a library that the worker has
        taker.write(text)
    else:
        taker.display(function, args, options)


_PICKLING = threading.Lock()


def _pickle_runner() -> bytes:
    # Each pool pickles in a thread of its own. Of two first calls at once, the one that is ready
    # would withdraw the modules while the other still pickles them.
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
