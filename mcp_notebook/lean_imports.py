"""Imports packages without the submodules that a bridge does not need.

Runs in the process of a bridge or a command, before anything else imports those packages. Kernels
import packages whole, because their users may need everything; only headless kernels skip the
debugger. A skipped module can still be imported later.
"""

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


@contextmanager
def leave_out(*names: str) -> Iterator[None]:
    """Hide modules from packages that are imported in the block, as if not installed.

    Args:
        names: Modules that those packages do not need. Loaded modules are not hidden.
    """
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None hides it
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


def postpone_names(package: str) -> None:
    """Postpone a package's ``__init__``, so that single modules can be imported without all others.

    It runs when a name is first read from the package, as in ``from package import name``.

    Args:
        package: The full name of the package; nothing happens if it is loaded. Its modules must be
            importable before its ``__init__`` has run.
    """
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    module, execute, lock = module_from_spec(spec), spec.loader.exec_module, threading.RLock()
    is_executed = False

    def find_name(name: str) -> Any:
        nonlocal is_executed
        with lock:
            if not is_executed:
                is_executed = True  # first, because it may read names itself
                execute(module)
        if vars(module)["__getattr__"] is not find_name:  # the package defines one itself
            return getattr(module, name)
        try:
            return vars(module)[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    vars(module)["__getattr__"] = find_name
    sys.modules[package] = module
    _add_to_parent(package, module)


def _add_to_parent(package: str, module: ModuleType) -> None:
    parent, _, name = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Keep the garbage collector away from what is imported in the block, and from all before it.

    Imported modules stay as long as the process. Without this, each full collection took 40 ms in
    the middle of a call, and collections a twentieth of the time of the import.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
