"""Classes and modules of libraries, looked up without importing the libraries.

Runs in the user's kernel, on any thread. A value of a library exists only where the user imported
it. While a cell is still importing a library, it is in ``sys.modules`` with half of its names
missing.
"""

import os
import sys
import sysconfig
from pathlib import Path
from types import WrapperDescriptorType
from typing import Any

get_mro = type.__dict__["__mro__"].__get__
"""A class's ``__mro__`` as `type` returns it: a metaclass could answer anything."""
_get_module = type.__dict__["__module__"].__get__
get_members = type.__dict__["__dict__"].__get__
"""The same for its ``__dict__``."""


_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


def find_library_folder(filename: str) -> Path | None:
    """Return the folder into which the library with a file is installed; None for other files.

    Besides Python's own folders, it is any folder of ``sys.path`` into which pip has installed
    something: it may be the user's own, or stand in PYTHONPATH.
    """
    path = Path(os.path.normpath(filename))
    for folder in path.parents:
        if folder.name in ("site-packages", "dist-packages"):
            return folder
    # An entry that a notebook adds may be relative: "../libs".
    for entry in (*_STANDARD, *map(os.path.abspath, filter(None, sys.path))):
        if path.is_relative_to(entry) and (entry in _STANDARD or _has_packages(entry)):
            return Path(entry)
    return None


def _has_packages(folder: str) -> bool:
    return next(Path(folder).glob("*.dist-info"), None) is not None


def get_module_name(kind: type) -> str:
    """Return the name of a class's module, without running foreign code; "" if it has none."""
    try:
        module = _get_module(kind)
    except AttributeError:  # it was deleted
        return ""
    return module if type(module) is str else ""


def find_imported(name: str) -> Any:
    """Return a module that is completely imported; None otherwise.

    Args:
        name: Its full name: ``"matplotlib.pyplot"``.
    """
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module


def is_instance(value: Any, path: str) -> bool:
    """Return whether a value is an instance of a library's class, without importing the library.

    Args:
        value: Anything.
        path: The full name of the class: ``"pandas.DataFrame"``.
    """
    module, _, name = path.rpartition(".")
    kind = getattr(sys.modules.get(module), name, None)
    # A module that another thread is importing may not have the name yet.
    return isinstance(kind, type) and isinstance(value, kind)


def claims_class(kind: type) -> bool:
    """Return whether objects of a class say themselves which class they are of, as proxies do.

    `isinstance` runs that code, which may load data, wait for a server, or never return.
    """
    for parent in get_mro(kind)[:-1]:
        members = get_members(parent)
        if "__class__" in members:
            return True
        own = members.get("__getattribute__")
        if own is not None and type(own) is not WrapperDescriptorType:
            return True
    return False


def find_libraries(value: Any) -> frozenset[str]:
    """Return the top-level modules of a value's classes, except that of `object`.

    A proxy that claims another class has the modules of both.
    """
    kind = type(value)
    claimed = value.__class__
    libraries = _find_libraries_of(kind)
    if claimed is not kind and isinstance(claimed, type):
        libraries += _find_libraries_of(claimed)
    return frozenset(libraries)


def _find_libraries_of(kind: type) -> list[str]:
    modules = filter(None, map(get_module_name, get_mro(kind)[:-1]))
    return [module.partition(".")[0] for module in modules]
