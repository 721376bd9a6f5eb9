"""Runs the libraries that draw plots, in another process with a time limit.

Runs in the user's kernel, on the thread of the call, which waits for the process
(`plots.renderer_process`). A library may hang (a browser that does not answer), run forever (a
picture that refers to itself a million times), crash, or hold the GIL; the kernel is protected from
all of this.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from mcp_notebook.kernel.safe.foreign_code import list_drawings
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.safe.text import clean_text, cut_text

SECONDS = 20.0
"""Time limit of one attempt in seconds; a browser takes 2 to 10 to start."""
RESULT_SECONDS = 60.0
"""Time limit for all plots of a result in seconds; the kernel waits for them."""
RESULT_DRAWINGS = 20
"""Maximum plots that are drawn for a result; each takes a process, and a result shows fewer."""
_PROGRAM = Path(__file__).with_name("renderer_process.py")
_STEP = 0.1
_GRACE = 5
"""Seconds after the time limit at which the process ends itself, in case the kernel died."""
_MAX_MESSAGE = 500


class NotDrawn(Exception):
    """A plot could not be drawn; the message says why and what to do."""


def draw(
    library: str,
    source: str,
    *,
    seconds: float = SECONDS,
    result_seconds: float = RESULT_SECONDS,
    program: Path = _PROGRAM,
    **options: Any,
) -> bytes:
    """Draw a plot in another process.

    Args:
        library: The name of a function of `renderer_process`.
        source: The specification of the plot, or its SVG.
        seconds: Longest time, in seconds.
        result_seconds: Longest time of all plots of a result, in seconds.
        program: The Python program that draws.
        options: Arguments of the function.

    Returns:
        The encoded picture.

    Raises:
        NotDrawn: It failed or took too long.
        KeyboardInterrupt: The call and the drawing were stopped.
    """
    drawings = list_drawings()
    seconds_left = result_seconds - sum(drawings)
    if seconds_left <= 0:
        limit = f"{result_seconds:g} seconds"
        raise NotDrawn(f"earlier plots took the {limit} that the plots of a result may take")
    if len(drawings) >= RESULT_DRAWINGS:
        raise NotDrawn(f"a result has at most {RESULT_DRAWINGS} plots drawn")
    name = library.removesuffix("_svg").removesuffix("_vega").replace("_", "-")
    seconds = min(seconds, seconds_left)
    # -P: a module of that name in the notebook's folder must not shadow the library.
    command = [sys.executable, "-P", str(program), library, str(math.ceil(seconds) + _GRACE)]
    started = time.monotonic()
    try:
        return _run(command, json.dumps({"source": source, **options}).encode(), seconds)
    except NotDrawn as error:
        raise NotDrawn(f"{name} {error}") from None
    finally:
        drawings.append(time.monotonic() - started)


def _run(command: list[str], request: bytes, seconds: float) -> bytes:
    """Return what a process writes."""
    with Shield() as shield:
        process = _start_process(command, request)
        try:
            out, err = _wait_for_output(process, seconds, shield)
        finally:
            _end_process(process)
    if process.returncode == 0 and out:
        return out
    reason = cut_text(
        clean_text(err.decode("utf-8", "replace")).strip().rpartition("\n")[2], _MAX_MESSAGE
    )
    raise NotDrawn(f"failed: {reason or f'its process ended with {process.returncode}'}")


def _start_process(command: list[str], request: bytes) -> "subprocess.Popen[bytes]":
    """Start a process that draws.

    Args:
        command: Its program and arguments.
        request: What it reads.

    Raises:
        NotDrawn: It cannot be started.
    """
    try:
        # Not a pipe: Python drops what the process had not read when a step ended.
        with tempfile.TemporaryFile() as file:
            file.write(request)
            file.seek(0)
            # A new session, so that an interrupt of the kernel does not reach it.
            return subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
    except OSError as error:
        raise NotDrawn(f"could not be started: {error}") from error


def _wait_for_output(
    process: "subprocess.Popen[bytes]", seconds: float, shield: Shield
) -> tuple[bytes, bytes]:
    end = time.monotonic() + seconds
    while True:
        try:
            return process.communicate(timeout=_STEP)
        except subprocess.TimeoutExpired:
            shield.run(int)  # raises a pending interrupt
            if time.monotonic() >= end:
                raise NotDrawn(f"did not draw it within {seconds:g} seconds") from None


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a process that still runs, and the browser that it started."""
    if process.poll() is None:
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.Error:
            family = []
        process.kill()
        for member in family:
            with suppress(psutil.Error):
                member.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
