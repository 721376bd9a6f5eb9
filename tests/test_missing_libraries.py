import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from missing_libraries import OUTSIDE_THE_EXTRAS

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
    "test_program.py": "import pytest\ndef test_one(): pytest.skip('no dot')\n",
}


@pytest.mark.parametrize(
    ("ci", "counts"),
    [("true", "1 failed, 2 skipped, 2 errors"), ("", "5 skipped")],
    ids=["CI", "elsewhere"],
)
def test_a_library_of_the_extras_may_be_missing_anywhere_but_in_ci(tmp_path, ci, counts):
    for name, code in TESTS.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-ra", "-p", "missing_libraries"),
            *("-p", "no:cacheprovider", "--continue-on-collection-errors", "."),
        ],
        cwd=tmp_path,
        env=os.environ | {"CI": ci, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert counts in done.stdout.splitlines()[-1], done.stdout
    assert (done.returncode == 0) == (not ci)
    assert "could not import 'kaleido'" in done.stdout
    if ci:
        assert "could not import 'nosuch'" in done.stdout
        assert "CI has what the extra `test` declares." in done.stdout


def test_no_extra_brings_what_may_be_missing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [line for extra in project["optional-dependencies"].values() for line in extra]
    for name in OUTSIDE_THE_EXTRAS:
        assert not [line for line in lines if line.startswith(name)]
