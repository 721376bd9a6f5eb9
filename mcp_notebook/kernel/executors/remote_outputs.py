"""Collects the printed text and displays of a function on an executor's worker.

Displayed objects are sent as objects: the notebook formats them as if they had been displayed
there. Output of the worker's other threads passes through.

This module is sent to workers by value, with `remote_run`: it imports nothing of this package.
"""

import builtins
import io
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

MAX_PRINTED = 1_000_000
"""Characters of printed text that are returned; the rest is dropped."""

MAX_DISPLAYED = 20_000_000
"""Bytes of all displayed objects; beyond that, only their text is returned."""
_MAX_REPR = 10_000
"""Characters."""
_FUNCTIONS = (
    ("builtins", "display"),
    ("IPython.core.display_functions", "clear_output"),
    ("IPython.core.display_functions", "display"),
    ("IPython.display", "clear_output"),
    ("IPython.display", "display"),
    ("matplotlib_inline.backend_inline", "display"),
    ("matplotlib.pyplot", "show"),
)
"""Functions that display something, by their modules."""


class Outputs:
    """The outputs of a function, in order and within bounds."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._room = MAX_PRINTED
        self._display_room = MAX_DISPLAYED
        self._dropped = 0
        self._display_ids = 0

    @property
    def items(self) -> list[Any]:
        """Printed texts, and displays: IPython's function, pickled arguments if they fit, text."""
        note = f"\n[... {self._dropped:,} characters dropped ...]\n" if self._dropped else ""
        return [*self._items, note] if note else self._items

    def write(self, text: str) -> None:
        """Take printed text."""
        part = text[: self._room]
        self._room -= len(part)
        self._dropped += len(text) - len(part)
        if self._items and isinstance(self._items[-1], str):
            self._items[-1] += part
        elif part:
            self._items.append(part)

    def display(self, *objects: Any, **options: Any) -> Any:
        """Stand for IPython's ``display``."""
        handle = None
        if options.get("display_id") is True:
            self._display_ids += 1
            options["display_id"] = f"{id(self):x}-{self._display_ids}"
        if options.get("display_id") is not None and not options.get("update"):
            handle = DisplayHandle(self, options["display_id"])
        self._add("display", objects, options)
        return handle

    def clear(self, wait: bool = False) -> None:  # noqa: FBT001, FBT002 - IPython's
        """Stand for IPython's ``clear_output``."""
        self._add("clear_output", (), {"wait": wait})

    def show_figures(self, *_args: Any, **_options: Any) -> None:
        """Stand for pyplot's ``show``: display the open figures, and close them."""
        for figure in open_figures():
            close_figures([figure])
            self.display(figure)

    def _add(self, function: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        try:
            with detach_figures(args):
                data = _dump((args, options))
        except Exception:  # noqa: BLE001 - pickling runs the objects' code
            data = b""
        is_sendable = 0 < len(data) <= self._display_room
        if is_sendable:
            self._display_room -= len(data)
        text = "".join(f"{_describe(item)}\n" for item in args)
        self._items.append((function, data if is_sendable else None, text))


class DisplayHandle:
    """Stands for IPython's handle of a display.

    Args:
        outputs: Where the display is.
        display_id: The display's.
    """

    def __init__(self, outputs: Outputs, display_id: str) -> None:
        self._outputs = outputs
        self.display_id = display_id

    def display(self, item: Any, **options: Any) -> None:
        """Display something else with the same id."""
        self._outputs.display(item, display_id=self.display_id, **options)

    def update(self, item: Any, **options: Any) -> None:
        """Replace what is displayed."""
        self._outputs.display(item, display_id=self.display_id, update=True, **options)


class StandIn:
    """Replaces an attribute of a module while a function runs in a thread.

    A worker may run several functions at a time, each in its own thread and with its own
    replacements; other threads get the original.

    Args:
        owner: The module.
        name: The attribute.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self.before = getattr(owner, name, None)
        self.thread: int | None = threading.get_ident()
        """The thread; None when its function has ended."""
        self._owner, self._name = owner, name
        setattr(owner, name, self)

    def leave(self) -> None:
        """Restore the original, unless another replacement was made since."""
        self.thread = None
        self._forget_others()
        if getattr(self._owner, self._name, None) is not self:
            return  # the other one calls this one, which calls the original
        if self.before is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self.before)

    def is_in_its_thread(self) -> bool:
        """Return whether the caller is the function."""
        self._forget_others()
        return threading.get_ident() == self.thread

    def _forget_others(self) -> None:
        """Skip replacements whose function has ended."""
        while isinstance(self.before, StandIn) and self.before.thread is None:
            self.before = self.before.before


class StandInFunction(StandIn):
    """Stands for a function.

    Args:
        owner: Its module.
        name: Its name.
        replacement: What the thread calls in its place.
    """

    def __init__(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        self._replacement = replacement
        super().__init__(owner, name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the replacement, or in another thread the original."""
        if self.is_in_its_thread():
            return self._replacement(*args, **options)
        if self.before is None:
            raise NameError(f"name {self._name!r} is not defined")
        return self.before(*args, **options)


class StandInStream(StandIn, io.TextIOBase):
    """Stands for ``stdout`` or ``stderr``.

    Args:
        name: Which one.
        write: Takes what the thread prints.
    """

    def __init__(self, name: str, write: Callable[[str], None]) -> None:
        self._write = write
        super().__init__(sys, name)

    def write(self, text: str) -> int:
        """Take the thread's text; pass on that of other threads."""
        if self.is_in_its_thread():
            self._write(text)
        elif self.before is not None:
            self.before.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the original stream."""
        if self.before is not None:
            self.before.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)


@contextmanager
def collect(outputs: Outputs) -> Iterator[None]:
    """Collect the outputs of this thread within the block."""
    replacements = {
        "clear_output": outputs.clear,
        "display": outputs.display,
        "show": outputs.show_figures,
    }
    with ExitStack() as stack:
        for stream in ("stdout", "stderr"):
            stack.callback(StandInStream(stream, outputs.write).leave)
        for module, name in _FUNCTIONS:
            owner = sys.modules.get(module)
            # IPython adds `display` to the builtins of a notebook; a worker lacks it.
            if owner is not None and (hasattr(owner, name) or owner is builtins):
                stack.callback(StandInFunction(owner, name, replacements[name]).leave)
        yield


def open_figures() -> list[Any]:
    """Return the figures that are open in pyplot."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return []
    return [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]


@contextmanager
def detach_figures(items: Iterable[Any]) -> Iterator[None]:
    """Detach figures from pyplot within the block: an attached one opens when it is unpickled."""
    figures = [figure for figure in open_figures() if any(figure is item for item in items)]
    managers = [(figure.canvas, figure.canvas.manager) for figure in figures]
    for canvas, _ in managers:
        canvas.manager = None
    try:
        yield
    finally:
        for canvas, manager in managers:
            canvas.manager = manager


def close_figures(figures: Iterable[Any]) -> None:
    """Close figures, as a notebook does at the end of a cell."""
    for figure in figures:
        sys.modules["matplotlib.pyplot"].close(figure)


def _dump(value: Any) -> bytes:
    import cloudpickle  # noqa: PLC0415 - it is loaded on workers, and in the kernel when one is used

    data: bytes = cloudpickle.dumps(value)
    return data


def _describe(item: Any) -> str:
    try:
        return repr(item)[:_MAX_REPR]
    except Exception as error:  # noqa: BLE001 - the author's own class
        return f"[a display of type {type(item).__name__}, whose repr failed: {error}]"
