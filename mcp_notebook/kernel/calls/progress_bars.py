"""Reports progress bars of tqdm and rich that a call creates as the call's progress.

Runs in the user's kernel. Neither library is imported here: their classes are patched at the start
of the first call that finds them imported, or as soon as a tool imports them, and restored when the
extension is unloaded. Outside of calls a patched class behaves as before.

A bar belongs to the call that creates it, whichever thread moves it later. It draws nothing: its
text would be noise in the result. Of several open bars the outermost counts, which is the one that
moved first; consecutive bars add up.
"""

import logging
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.safe.replacement import replace_attribute
from mcp_notebook.kernel.tools.context import Update

logger = logging.getLogger(__name__)

_INTERVAL = 0.1
"""Seconds between two reports of a rich bar; tqdm has an interval of its own."""
_OWNER = "_mcp_notebook_bars"
"""Attribute of a bar that was created in a call: the call's `ProgressBars`."""
_SHORT = "{desc} {percentage:.0f}% {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
"""tqdm's line without the drawn bar."""


class ProgressBars:
    """The bars of one call.

    Args:
        report: Receives the call's progress.
    """

    def __init__(self, report: Callable[[Update], None]) -> None:
        self._report = report
        self._outermost: Callable[[], object | None] = lambda: None
        self._is_over = True
        """Whether the outermost bar is full or closed, so that another may take its place."""
        self._done = 0.0
        self._before = 0.0
        """Progress of earlier outermost bars."""

    def update(
        self, bar: object, done: float, total: float | None, text: str, *, closed: bool
    ) -> None:
        """Report that a bar moved.

        Args:
            bar: The bar; only a weak reference is kept.
            done: How much is done.
            total: How much there is to do, if the bar knows.
            text: Its progress in words.
            closed: Whether this was its last update.
        """
        outermost = self._outermost()
        if outermost is not bar:
            if closed or not (self._is_over or outermost is None):
                return
            self._before += self._done
            self._outermost = weakref.ref(bar)
        self._done = done
        self._is_over = closed or (total is not None and done >= total)
        self._report(
            Update(self._before + done, None if total is None else self._before + total, text)
        )


class ProgressBarPatcher:
    """Patches the classes of the libraries, so that bars report to their calls.

    Args:
        current: Returns the bars of the call that the caller runs in, None outside of calls.
    """

    def __init__(self, current: Callable[[], ProgressBars | None]) -> None:
        self._current = current
        self._patched: dict[str, list[Callable[[], None]]] = {}
        self._patches = {
            "tqdm.std": self._patch_tqdm,
            "tqdm.notebook": self._patch_tqdm_notebook,
            "rich.progress": self._patch_rich,
        }
        self._finder = _Finder(frozenset(self._patches), self.install)

    def install(self) -> None:
        """Patch the imported libraries that are not patched yet; cheap if there are none."""
        if self._finder not in sys.meta_path:
            sys.meta_path.insert(0, self._finder)
        for name, patch in self._patches.items():
            module = sys.modules.get(name)
            if module is not None and name not in self._patched:
                undos = self._patched[name] = []
                try:
                    patch(module, undos)
                except AttributeError:  # still being imported, or an unknown version
                    logger.debug("bars of %s stay as they are", name, exc_info=True)
                    if find_imported(name) is None:
                        del self._patched[name]

    def uninstall(self) -> None:
        """Put everything back."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for undos in self._patched.values():
            for undo in reversed(undos):
                undo()
        self._patched.clear()

    # -- tqdm --------------------------------------------------------------------------------------

    def _patch_tqdm(self, module: Any, undos: list[Callable[[], None]]) -> None:
        original = module.tqdm.__init__

        @wraps(original)
        def __init__(bar: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            bars = self._current()
            if bars is not None:
                setattr(bar, _OWNER, bars)
                # On the instance, so that it also covers the classes that draw in their own way.
                bar.display = lambda *_args, **_kwargs: _report_tqdm(bar, bars)
                if kwargs.get("file") in (None, sys.stdout, sys.stderr):
                    kwargs["file"] = _NullStream()
            original(bar, *args, **kwargs)

        undos.append(replace_attribute(module.tqdm, "__init__", __init__))

    def _patch_tqdm_notebook(self, module: Any, undos: list[Callable[[], None]]) -> None:
        """Let a widget bar work without widgets, which would be invisible."""
        self._patch_tqdm_notebook_start(module.tqdm_notebook, undos)
        original = module.tqdm_notebook.reset

        @wraps(original)
        def reset(bar: Any, total: float | None = None) -> Any:
            ours = getattr(bar, _OWNER, None) is not None
            return module.std_tqdm.reset(bar, total) if ours else original(bar, total)

        undos.append(replace_attribute(module.tqdm_notebook, "reset", reset))

    def _patch_tqdm_notebook_start(self, owner: Any, undos: list[Callable[[], None]]) -> None:
        original = owner.__init__

        @wraps(original)
        def __init__(bar: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            if self._current() is None:
                original(bar, *args, **kwargs)
                return
            kwargs.pop("display", None)
            kwargs["disable"] = bool(kwargs.get("disable", False))
            bar.disp = lambda *_args, **_kwargs: None
            super(owner, bar).__init__(*args, **kwargs)

        undos.append(replace_attribute(owner, "__init__", __init__))

    # -- rich --------------------------------------------------------------------------------------

    def _patch_rich(self, module: Any, undos: list[Callable[[], None]]) -> None:
        owner = module.Progress
        start, stop = owner.start, owner.stop

        @wraps(start)
        def start_quietly(progress: Any) -> None:
            bars = self._current()
            if bars is None:
                start(progress)
            else:
                setattr(progress, _OWNER, bars)
                progress.live.auto_refresh = False  # otherwise a thread waits for drawing to start

        @wraps(stop)
        def stop_quietly(progress: Any) -> None:
            if getattr(progress, _OWNER, None) is None:
                stop(progress)
            else:
                _report_rich(progress, interval=0)
                delattr(progress, _OWNER)

        undos.append(replace_attribute(owner, "start", start_quietly))
        undos.append(replace_attribute(owner, "stop", stop_quietly))
        undos.append(replace_attribute(owner, "update", _with_report(owner.update)))
        undos.append(replace_attribute(owner, "advance", _with_report(owner.advance)))


class _Finder(MetaPathFinder):
    """Notices imports, which it leaves to the other finders.

    Args:
        names: The modules to notice.
        on_import: Called when one of them has been imported.
    """

    def __init__(self, names: frozenset[str], on_import: Callable[[], None]) -> None:
        self._names = names
        self._on_import = on_import

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module by the other finders, and have its import noticed."""
        if fullname not in self._names:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_notify(module: ModuleType) -> None:
            execute(module)
            self._on_import()

        spec.loader.exec_module = execute_and_notify  # type: ignore[method-assign]
        return spec


def _report_tqdm(bar: Any, bars: ProgressBars) -> bool:
    how = {"bar_format": _SHORT} if bar.total else {}
    text = bar.format_meter(**{**bar.format_dict, **how}).strip()
    bars.update(bar, bar.n, bar.total, text, closed=bar.disable)
    return True


def _with_report(method: Callable[..., None]) -> Callable[..., None]:
    """Return a method of rich's ``Progress`` that also reports to the call."""

    @wraps(method)
    def method_with_report(progress: Any, *args: Any, **kwargs: Any) -> None:
        method(progress, *args, **kwargs)
        if getattr(progress, _OWNER, None) is not None:
            _report_rich(progress, interval=_INTERVAL)

    return method_with_report


def _report_rich(progress: Any, *, interval: float) -> None:
    now = time.monotonic()
    if now - getattr(progress, "_mcp_notebook_reported", 0.0) < interval:
        return
    progress._mcp_notebook_reported = now  # noqa: SLF001 - our attribute
    for task in progress.tasks:
        text = f"{task.description} {task.completed:g}"
        if task.total is not None:
            text += f"/{task.total:g}"
        bars = getattr(progress, _OWNER)
        bars.update(task, task.completed, task.total, text, closed=task.finished)


class _NullStream:
    """A stream for the few characters that a bar writes outside of its display."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Not a terminal, as a notebook's own streams are not."""
        return False
