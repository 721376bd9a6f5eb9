"""``%mcp_tool --package``: an installed package's tools beside those of cells."""

import pytest
from installed_packages import ACME, install
from live import Link, record_of, text_of, tools_of


@pytest.fixture
def notebook(kernel, tmp_path):
    """A notebook in whose environment acme-tools is installed."""
    install(tmp_path, "acme", ACME, acme="acme")
    kernel.ok(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules.pop('acme', None)")
    yield kernel
    kernel.ok("import sys; del sys.path[0]; sys.modules.pop('acme', None)")


def names_of(kernel):
    return [*tools_of(kernel)]


def test_an_installed_package_offers_nothing_until_the_notebook_names_it(notebook):
    assert "acme" not in notebook.ok("print(*sys.modules)").stdout.split()
    assert names_of(notebook) == []
    with Link(record_of(notebook)) as link:
        shown = notebook.ok("%mcp_tool --package acme")
        changed = link.receive()
        assert [tool.name for tool in changed.tools] == ["vat", "due", "ledger_book"]
        assert text_of(link.call("vat", country="DE", net=100)) == "119.0"
        assert [text_of(link.call("ledger_book", amount=2)) for _ in "ab"] == ["2", "4"]
        assert "allowed: 'DE' | 'FR'" in text_of(link.call("vat", country="XX", net=1))
    assert shown.text.count("from the package acme-tools") == 3


def test_a_line_may_name_some_of_the_tools_and_a_prefix(notebook):
    notebook.ok("%mcp_tool --package acme due --prefix acme_")
    assert names_of(notebook) == ["acme_due"]
    notebook.ok("%mcp_tool --package acme vat, ledger_book")
    assert names_of(notebook) == ["acme_due", "vat", "ledger_book"]


def test_a_cell_that_runs_again_without_the_line_loses_the_tools(notebook):
    notebook.run("%mcp_tool --package acme", cell="c1")
    assert len(names_of(notebook)) == 3
    notebook.run("%mcp_tool --package acme", cell="c1")
    assert len(names_of(notebook)) == 3
    notebook.run("%mcp_tool --package acme due", cell="c1")
    assert names_of(notebook) == ["due"]
    notebook.run("pass", cell="c1")
    assert names_of(notebook) == []


def test_a_package_never_takes_the_name_of_another_tool(notebook):
    notebook.ok("%%mcp_tool\ndef vat(): 'Mine.'")
    said = notebook.run("%mcp_tool --package acme").error
    assert "`acme-tools` has a tool `vat`, and so has this notebook: add `--prefix NAME_`" in said
    assert names_of(notebook) == ["vat"]
    notebook.ok("%mcp_tool --package acme --prefix acme_")
    assert names_of(notebook) == ["vat", "acme_vat", "acme_due", "acme_ledger_book"]


def test_a_cell_may_replace_a_packages_tool_and_says_so(notebook):
    notebook.run("%mcp_tool --package acme", cell="c1")
    shown = notebook.run("%%mcp_tool\ndef vat(): 'Mine.'", cell="c2")
    assert "`vat` replaces the tool of that name from another cell" in shown.text


def test_its_tools_survive_a_reload_and_later_cells(notebook):
    notebook.ok("%mcp_tool --package acme")
    notebook.ok("vat = due = 5\n%reload_ext mcp_notebook")
    notebook.ok("del vat, due")
    assert names_of(notebook) == ["vat", "due", "ledger_book"]
    notebook.ok("from mcp_notebook import registry\nregistry.remove('vat')")
    assert names_of(notebook) == ["due", "ledger_book"]


def test_a_wrong_line_is_one_sentence(notebook):
    for line, said in {
        "%mcp_tool --package acmee": "Did you mean `acme`?",
        "%mcp_tool --package": "`--package` needs a value",
        "%mcp_tool --package acme --read-only": "The author of `acme` sets the options of its",
        "%%mcp_tool --package acme\ndef f(): 'F.'": "`--package` is for a line of its own",
    }.items():
        assert said in notebook.run(line).error
    assert names_of(notebook) == []


def test_completion_offers_the_packages(notebook):
    typed = "%mcp_tool --package a"
    notebook.client.complete(typed, len(typed))
    assert notebook.client.get_shell_msg(timeout=30)["content"]["matches"] == ["acme"]
