"""A bridge that tells how many objects it has: ``python counting_bridge.py FILE ARGUMENTS...``.

At SIGUSR1, it collects its garbage and writes the number of objects by type into the file. The rest
of the arguments are those of ``mcp-notebook``.
"""

import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from mcp_notebook.cli.main import main

FILE = Path(sys.argv.pop(1))


def count(_signal: int, _frame: FrameType | None) -> None:
    """Write the numbers; whole, or not at all."""
    gc.collect()
    numbers = Counter(type(value).__qualname__ for value in gc.get_objects())
    new_file = FILE.with_suffix(".new")
    new_file.write_text(json.dumps(numbers), encoding="utf-8")
    new_file.replace(FILE)


signal.signal(signal.SIGUSR1, count)
main()
