import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = {
    "test_whole.py": "import pytest\npytest.importorskip('nosuch')\ndef test_one(): pass\n",
    "test_one.py": "import pytest\ndef test_one(): pytest.importorskip('nosuch.part')\n",
    "test_fixture.py": (
        "import pytest\n@pytest.fixture\ndef lib(): return pytest.importorskip('nosuch')\n"
        "def test_one(lib): pass\n"
    ),
    "test_outside.py": (
        "import pytest, sys\nsys.modules['kaleido'] = None\n"
        "def test_one(): pytest.importorskip('kaleido')\n"
    ),
    "test_needs.py": (
        "import pytest\n@pytest.mark.needs('sys', 'nosuch')\ndef test_one(): pass\n"
        "@pytest.mark.needs('sys')\ndef test_two(): pass\n"
    ),
    "test_program.py": "import pytest\ndef test_one(): pytest.skip('no dot')\n",
}


def run_pytest(folder, ci, *options):
    """Run `TESTS` in a folder, and return how that ended."""
    for name, code in TESTS.items():
        (folder / name).write_text(code, encoding="utf-8")
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-ra", "-p", "missing_libraries"),
            *("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestUnknownMarkWarning"),
            *("--continue-on-collection-errors", *options),
        ],
        cwd=folder,
        env=os.environ | {"CI": ci, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ci", "counts"),
    [("true", "1 failed, 1 passed, 3 skipped, 2 errors"), ("", "1 passed, 6 skipped")],
    ids=["CI", "elsewhere"],
)
def test_a_library_of_the_extras_may_be_missing_anywhere_but_in_ci(tmp_path, ci, counts):
    done = run_pytest(tmp_path, ci)
    assert counts in done.stdout.splitlines()[-1], done.stdout
    assert (done.returncode == 0) == (not ci)
    assert "could not import 'kaleido'" in done.stdout
    if ci:
        assert "could not import 'nosuch'" in done.stdout
        assert "CI has what the extras declare." in done.stdout


@pytest.mark.slow
def test_a_library_that_a_test_needs_may_not_be_missing_where_these_tests_are_asked_for(tmp_path):
    done = run_pytest(tmp_path, "", "-m", "needs", "test_needs.py")
    assert "1 passed, 1 error" in done.stdout.splitlines()[-1], done.stdout
    assert "needs nosuch: pip install -e '.[test-libraries]'" in done.stdout
