"""Breaks the core in many places, one at a time, and reports what no test notices.

By hand: ``python tests/mutations/run.py [FROM:TO | 3,17,20]``; ``--only TEXT`` for some files.
Each change of `changes.CHANGES` is made in a copy of the tree, never in the checkout, and the tests
named with it run there. A test that fails with the change has to pass without it; otherwise it says
nothing of the change. What is not caught needs a test, at most six of all may go without.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from changes import CHANGES, Change

ROOT = Path(__file__).parents[2]
LIMIT = 600
"""Seconds that the tests of one change may take; pytest itself ends a test that hangs."""
NEEDED = ("mcp_notebook", "tests", "notebooks", "docs", "pyproject.toml", "README.md")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
_SHOWN = 100
"""Characters of a line of the report."""


@dataclass(frozen=True)
class Run:
    """What a run of tests came to."""

    passed: bool
    failed: Sequence[str] = ()
    """The tests that failed; none if pytest itself ended early."""
    end: str = ""
    """How it ended, in a line."""


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


def run_tests(tree: Path, tests: Iterable[str]) -> Run:
    """Run tests in a copy of the tree, up to the first that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    # Nothing is compiled twice, also where Python is told to write no bytecode.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    try:
        run = subprocess.run(
            [*command, *tests],
            cwd=tree,
            env=os.environ | bytecode | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run(passed=False, end=f"the tests took more than {LIMIT} s")
    lines = run.stdout.split("\n") if run.stdout.strip() else run.stderr.split("\n")
    end = next((line for line in reversed(lines) if line.strip()), "no output")
    return Run(
        passed=run.returncode == 0,
        failed=_FAILED.findall(run.stdout),
        end=f"pytest's exit status is {run.returncode}: {end}",
    )


def try_change(tree: Path, change: Change) -> tuple[str, str]:
    """Make a change in a copy of the tree, run its tests, and undo it.

    Returns:
        The verdict, and what it is by.
    """
    path = tree / "mcp_notebook" / change.file
    tests = [f"tests/{test}" for test in change.tests.split()]
    source = path.read_text(encoding="utf-8")
    if (times := source.count(change.before)) != 1:
        return "UNCLEAR", f"what it changes is {times} times in the file"
    path.write_text(source.replace(change.before, change.after), encoding="utf-8")
    try:
        changed = run_tests(tree, tests)
    finally:
        path.write_text(source, encoding="utf-8")
    if changed.passed:
        return "NOT CAUGHT", change.tests
    unchanged = run_tests(tree, changed.failed or tests)
    noticed = " ".join(changed.failed) or changed.end
    if unchanged.passed:
        return "caught", noticed
    return "UNCLEAR", f"without the change, too: {' '.join(unchanged.failed) or unchanged.end}"


def read_numbers(text: str) -> Sequence[int]:
    """Return the numbers of the changes that the command line chooses."""
    if ":" not in text:
        return [int(number) for number in text.split(",")]
    start, _, end = text.partition(":")
    return range(len(CHANGES))[int(start or 0) : int(end) if end else None]


def show(change: Change) -> str:
    """Return a change as the lines of a diff."""
    before, after = (text.strip("\n").split("\n") for text in (change.before, change.after))
    signed = [f"- {line}" for line in before] + [f"+ {line}" for line in after if line.strip()]
    return "\n".join(f"      {line}" for line in signed)


def main() -> int:
    """Try the changes that the command line chooses; return how many were not caught."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", nargs="?", default=":", help="FROM:TO, or 3,17,20; else all")
    parser.add_argument("--only", default="", help="only changes of files with this in their name")
    arguments = parser.parse_args()
    numbers = read_numbers(arguments.numbers)
    chosen = [n for n in numbers if arguments.only in CHANGES[n].file]
    missed = []
    with tempfile.TemporaryDirectory(prefix="mcpnb-mutations-") as folder:
        tree = copy_tree(Path(folder))
        for place, number in enumerate(chosen, start=1):
            change = CHANGES[number]
            line = change.before.strip().partition("\n")[0]
            print(f"{number:4}  {change.file}: {line}"[:_SHOWN], flush=True)
            began = time.monotonic()
            verdict, reason = try_change(tree, change)
            took = f"{time.monotonic() - began:.0f} s, {place} of {len(chosen)}"
            print(f"      {verdict}: {reason}\n      {took}", flush=True)
            if verdict != "caught":
                missed.append(number)
                print(show(change), flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught; not caught: {missed}")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
