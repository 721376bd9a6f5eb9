"""Breaks the core in many places, one at a time, and reports what no test notices.

By hand: ``python tests/mutations/run.py [FROM:TO | 3,17,20]``; ``--only TEXT`` for some files.
Each change of `changes.CHANGES` is made in a copy of the tree, never in the checkout, and the tests
named with it run there. What is not caught needs a test, at most six of all may go without.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from changes import CHANGES, Change

ROOT = Path(__file__).parents[2]
LIMIT = 300
"""Seconds that the tests of one change may take; a change that makes them hang is caught."""
NEEDED = ("mcp_notebook", "tests", "notebooks", "docs", "pyproject.toml", "README.md")


def copy_tree(folder: Path) -> Path:
    """Copy what the tests need, and return the copy."""
    copy = folder / "tree"
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    return copy


def run_tests(tree: Path, tests: Sequence[str]) -> str | None:
    """Run tests in a copy of the tree; return what they noticed, None if they all passed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the tests hang"
    if run.returncode == 0:
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"exit status {run.returncode}: {run.stdout[-200:]}"


def try_change(tree: Path, change: Change) -> str | None:
    """Make a change in a copy of the tree, run its tests, and undo it."""
    path = tree / "mcp_notebook" / change.file
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace(change.before, change.after), encoding="utf-8")
    try:
        return run_tests(tree, change.tests.split())
    finally:
        path.write_text(source, encoding="utf-8")


def read_numbers(text: str) -> Sequence[int]:
    """Return the numbers of the changes that the command line chooses."""
    if ":" not in text:
        return [int(number) for number in text.split(",")]
    start, _, end = text.partition(":")
    return range(len(CHANGES))[int(start or 0) : int(end) if end else None]


def main() -> int:
    """Try the changes that the command line chooses; return how many were not caught."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", nargs="?", default=":", help="FROM:TO, or 3,17,20; else all")
    parser.add_argument("--only", default="", help="only changes of files with this in their name")
    arguments = parser.parse_args()
    numbers = read_numbers(arguments.numbers)
    chosen = [(n, CHANGES[n]) for n in numbers if arguments.only in CHANGES[n].file]
    missed = []
    with tempfile.TemporaryDirectory(prefix="mcpnb-mutations-") as folder:
        tree = copy_tree(Path(folder))
        for number, change in chosen:
            began = time.monotonic()
            noticed = try_change(tree, change)
            took = f"{time.monotonic() - began:.0f} s"
            verdict = "NOT CAUGHT" if noticed is None else "caught"
            print(
                f"{number:3} {verdict:10} {took:>5}  {change.file}: {change.before.strip()[:60]!r}"
            )
            print(f"{'':21}{noticed or change.tests}"[:160], flush=True)
            if noticed is None:
                missed.append(number)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught; not caught: {missed}")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
