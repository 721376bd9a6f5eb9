"""``mcp-notebook check`` as people and programs run it."""

import shutil

import pytest
from documents import ROOT
from planted_faults import ADD, FAULTS, find, read_findings, run_check, write_notebook

RULES = {rule for _, rule, *_ in FAULTS.values()}


@pytest.fixture(scope="module")
def found(module_home):
    """What is found in one notebook with all planted faults."""
    cells = [cell for _, _, *cells in FAULTS.values() for cell in cells]
    notebook = write_notebook(module_home, *cells, ADD)
    return find(module_home, notebook, "--timeout", "5")


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found(found, fault):
    tool, rule, *_ = FAULTS[fault]
    assert (tool, rule) in found


def test_a_planted_fault_is_found_as_that_fault_only(found):
    wanted = {(tool, rule) for tool, rule, *_ in FAULTS.values()}
    assert {(tool, rule) for tool, rule in found if rule in RULES} == wanted


def test_a_notebook_without_faults_is_clean(home):
    done = run_check(home, write_notebook(home, ADD))
    assert done.returncode == 0
    assert done.stdout.endswith("No findings.\n")
    assert "\x1b" not in done.stdout


def test_findings_end_with_1_and_name_the_cell_the_reason_and_what_to_write(home):
    _, _, *cells = FAULTS["writes a file"]
    done = run_check(home, write_notebook(home, *cells))
    assert done.returncode == 1
    assert "export_sales, cell 2, line 2: It is declared read-only, but it writes the file" in (
        done.stdout
    )
    assert "remove `--read-only`. [changes-state]" in done.stdout


def test_a_line_that_declares_nothing_is_shown(home):
    done = run_check(home, write_notebook(home, ADD.replace("--read-only", "--read-onyl")))
    assert done.returncode == 2
    assert "There is no option `--read-onyl`. Did you mean `--read-only`?" in done.stderr
    assert "tools.ipynb offers no tools" in done.stderr


def test_a_call_that_ends_the_kernel_is_found_and_ends_the_calls(home):
    _, _, *cells = FAULTS["ends the kernel"]
    cells[-1] = cells[-1].replace(" --read-only", "")
    report = run_check(home, write_notebook(home, *cells, ADD), "--all").stdout
    assert [rule for mark, _, rule in read_findings(report) if mark == "✗"] == ["ends-kernel"]
    assert "Not called (the kernel ended in a call of `close_shop`): add." in report


@pytest.mark.slow
def test_tools_that_no_copy_can_run_are_named_together(home):
    one = ADD.replace("a: int,", "a: int = 1,")
    other = one.replace("def add", "def subtract").replace("Add two", "Difference of two")
    pool = """
from concurrent.futures import ThreadPoolExecutor
from mcp_notebook import mcp_tool
pool = ThreadPoolExecutor()
"""
    line = "@mcp_tool(read_only=True, executor=pool)"
    cells = [each.replace("%%mcp_tool --read-only", line) for each in (one, other)]
    done = run_check(home, write_notebook(home, pool, *cells))
    assert done.stdout.count("[not-tried]") == 1
    assert "`add` and `subtract` could not be called in a copy of the kernel" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("cells", [[], ["1 / 0"]], ids=["no tools", "only a cell that fails"])
def test_a_notebook_that_cannot_be_checked_ends_with_2(home, cells):
    done = run_check(home, write_notebook(home, *cells))
    assert done.returncode == 2
    assert "tools.ipynb" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_rule_can_be_switched_off_where_its_author_knows_better(home):
    _, _, *cells = FAULTS["differs from call to call"]
    cells[-1] += "    # mcp-check: ignore changing-answer\n"
    assert ("tell_id", "changing-answer") not in find(home, write_notebook(home, *cells))


@pytest.mark.slow
def test_tools_that_are_not_read_only_are_called_on_request_only(home):
    cell = FAULTS["writes a file"][-1].replace(" --read-only", "")
    notebook = write_notebook(home, cell)
    find(home, notebook)
    assert not (home / "sales.csv").exists()
    find(home, notebook, "--all")
    assert (home / "sales.csv").exists()


EFFECTS = [
    ("return 3", True),
    ("return len(open(__import__('os').devnull).read())", True),
    ("open(outside, 'w').close()", False),
    ("open(outside).close()", True),
    ("__import__('os').unlink(outside)", False),
    ("__import__('socket').socket().close()", False),
    ("__import__('subprocess').run(['true'])", False),
    ("sales.append(1)", False),
]


@pytest.mark.slow
def test_a_tool_is_called_read_only_if_its_calls_touched_nothing(home, tmp_path):
    (tmp_path / "outside").touch()
    setup = f"outside = {str(tmp_path / 'outside')!r}\nsales = []"
    cells = [
        f'%%mcp_tool\ndef count_{number}():\n    """Count the open orders."""\n    {body}'
        for number, (body, _) in enumerate(EFFECTS)
    ]
    report = run_check(home, write_notebook(home, setup, *cells), "--all").stdout
    advised = {tool for _, tool, rule in read_findings(report) if rule == "unsaid-read-only"}
    assert advised == {f"count_{number}" for number, (_, reads) in enumerate(EFFECTS) if reads}
    without = run_check(home, home / "tools.ipynb").stdout
    assert "unsaid-read-only" not in without


def test_each_example_on_the_line_is_called_in_a_copy_and_by_both_clients(home):
    line = "%%mcp_tool --read-only --example a=1 --example 'a=2, b=3'"
    report = run_check(home, write_notebook(home, ADD.replace("%%mcp_tool --read-only", line)))
    [row] = [each.split() for each in report.stdout.splitlines() if each.startswith("add ")]
    assert row[2] == "6"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["declaring_tools", "good_tools", "long_running", "quickstart", "weather"]
)
def test_the_demo_notebooks_give_no_false_alarm(home, name):
    shutil.copytree(ROOT / "notebooks", home / "notebooks")
    found = find(home, home / "notebooks" / f"{name}.ipynb")
    assert {(tool, rule) for tool, rule in found if rule in RULES} == set()
