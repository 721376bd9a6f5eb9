"""Libraries that the user has imported, found without importing them.

Runs in the user's kernel, on any thread. A cell may be importing a library just now: it is then in
``sys.modules``, and half of its names are missing.
"""

import sys
from typing import Any


def find_imported(name: str) -> Any:
    """Return a module that is imported completely; None: it is not imported, or not yet.

    Args:
        name: Its full name: ``"matplotlib.pyplot"``.
    """
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
