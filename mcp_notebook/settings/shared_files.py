"""Replaces files of the user that other programs read and write, too.

Runs in the process of the command. Another program, and the user after a failure, finds either the
old or the new file, never a part of one.
"""

import errno
import os
import shutil
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically; it keeps its permissions, and a symbolic link stays one.

    Args:
        path: The file, which need not exist.
        text: Its new content, as it is: line ends are kept.

    Raises:
        OSError: The file is as it was. `filename` is the file or the folder that cannot be written.
    """
    path = path.resolve()
    if path.exists() and not os.access(path, os.W_OK):
        # A read-only file could be replaced, but its owner does not want that.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as error:
        place = path if error.filename is None else path.parent
        raise OSError(error.errno, error.strerror, str(place)) from None
    finally:
        temporary.unlink(missing_ok=True)
