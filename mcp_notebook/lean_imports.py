"""Imports packages without the parts of them that a bridge does not use.

Runs in the process of a bridge or a command, before anything else imports those packages. Not in
kernels, whose users may want all of them: only the debugger is left out of headless ones. What is
left out can still be imported afterwards.
"""

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


@contextmanager
def leave_out(*names: str) -> Iterator[None]:
    """Let packages that are imported in the block find these modules as if not installed.

    Args:
        names: Modules that those packages can do without. One that is loaded already stays.
    """
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: not to be found
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


def postpone_names(package: str, *, for_modules: Collection[str] | None = None) -> None:
    """Let a package's modules be imported without its ``__init__``, which would import all of them.

    It runs when somebody first asks the package for a name, as in ``from package import name``.

    Args:
        package: Its full name; one that is loaded already stays as it is.
        for_modules: The only modules that can do without, by their names in the package; before
            any other one is imported, ``__init__`` runs. None: all of them.
    """
    spec = None if package in sys.modules else find_spec(package)
    if spec is None or spec.loader is None:
        return
    module, execute, lock = module_from_spec(spec), spec.loader.exec_module, threading.RLock()
    is_executed = False

    def run_init() -> None:
        nonlocal is_executed
        with lock:
            if not is_executed:
                is_executed = True  # before: it may ask for names itself
                execute(module)

    def find_name(name: str) -> Any:
        run_init()
        own = vars(module)["__getattr__"]
        if own is not find_name:
            return getattr(module, name)
        try:
            return vars(module)[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    vars(module)["__getattr__"] = find_name
    sys.modules[package] = module
    _add_to_parent(package, module)
    if for_modules is not None:
        sys.meta_path.insert(0, _InitFinder(package, for_modules, run_init))


class _InitFinder:
    """Finds no module, but runs the ``__init__`` of a package before most of its modules.

    Modules that need names of their package often cannot be imported before it.

    Args:
        package: The package.
        modules: Those that can do without.
        run_init: Runs it, if it has not run.
    """

    def __init__(
        self, package: str, modules: Collection[str], run_init: Callable[[], None]
    ) -> None:
        self._prefix = f"{package}."
        self._modules = modules
        self._run_init = run_init

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002 - importlib's signature
        """Run it if a module of the package is looked for that cannot do without."""
        if fullname.startswith(self._prefix):
            name = fullname.removeprefix(self._prefix).partition(".")[0]
            if name not in self._modules:
                with suppress(ValueError):  # another thread was first
                    sys.meta_path.remove(self)
                self._run_init()


def _add_to_parent(package: str, module: ModuleType) -> None:
    parent, _, name = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)
