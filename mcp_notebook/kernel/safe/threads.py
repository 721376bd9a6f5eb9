"""Raising an error in another thread."""

import ctypes


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in another thread, or take one back that has not been raised yet."""
    argument = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)
