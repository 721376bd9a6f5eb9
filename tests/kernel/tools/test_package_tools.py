"""Tools of installed packages: what their entry points may name, and what is said of others."""

import sys

import pytest
from installed_packages import ACME, install
from refusals import refusal_of

from mcp_notebook.kernel.tools.package_tools import list_packages, make_package_tools


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def names(point, **options):
    return [tool.name for tool in make_package_tools(point, **options)]


def test_a_module_offers_what_it_marks(site):
    install(site, "acme_module", ACME, acme="acme_module")
    assert names("acme") == ["vat", "due", "ledger_book"]
    assert names("acme", prefix="a_") == ["a_vat", "a_due", "a_ledger_book"]
    assert names("acme", only=["due"], prefix="a_") == ["a_due"]
    tool, *_ = make_package_tools("acme")
    assert tool.info.annotations["readOnlyHint"]


def test_an_entry_point_names_a_function_a_class_an_object_or_a_list(site):
    code = ACME + "\nledger = Ledger()\nboth = [helper, Ledger]\n"
    points = {"f": "helper", "marked": "due_date", "c": "Ledger", "o": "ledger", "l": "both"}
    install(
        site, "acme_kinds", code, **{name: f"acme_kinds:{item}" for name, item in points.items()}
    )
    found = {name: names(name) for name in points}
    assert found == {
        "f": ["helper"],
        "marked": ["due"],
        "c": ["ledger_book"],
        "o": ["book"],
        "l": ["helper", "ledger_book"],
    }
    assert list_packages() == sorted(points)


def test_each_problem_is_a_sentence_that_names_the_package(site):
    install(
        site,
        "odd",
        ACME + "\nnumber, bad, empty = 5, mcp_tool(lambda x: x), []\nbad.__name__ = 'a b'",
        name="odd-tools",
        acme="odd",
        number="odd:number",
        empty="odd:empty",
        lost="odd:lost",
        absent="no_such_module",
        badly="odd:bad",
    )
    install(site, "fails", "raise SystemExit('no licence')", name="failing", fails="fails")
    install(site, "plain", "x = 1", name="plain-tools", plain="plain", twice="plain")
    install(site, "other", "x = 1", name="other-tools", twice="other")
    for point, said in {
        "acmee": "No installed package offers tools as `acmee`. Did you mean `acme`?",
        "zzz": "No installed package offers tools as `zzz`; these do: absent, acme, badly, ",
        "number": "The package `number` offers an object of type int (odd:number). Its author",
        "empty": "The package `empty` offers no tools: odd:empty has no function marked",
        "plain": "The package `plain` offers no tools: plain has no function marked",
        "lost": "The package `lost` (odd-tools) cannot be loaded: AttributeError: ",
        "absent": "(odd-tools) cannot be loaded: ModuleNotFoundError: No module named 'no_such_",
        "fails": "(failing) cannot be loaded: SystemExit: no licence. `import fails` shows where.",
        "twice": "`other-tools` and `plain-tools` both offer tools as `twice`: uninstall one",
        "badly": "'a b' cannot be a tool's name",
    }.items():
        assert said in refusal_of(make_package_tools, point)
    refused = refusal_of(make_package_tools, "acme", ["vta"])
    assert refused == "The package `acme` has no tool `vta`. Did you mean `vat`?"
    refused = refusal_of(make_package_tools, "acme", ["zzz"])
    assert refused.endswith("has no tool `zzz`. It has vat, due, a b, ledger_book.")
    assert "`prefix` must consist" in refusal_of(make_package_tools, "acme", prefix="a b")


def test_without_any_package_the_message_says_how_to_get_one():
    said = refusal_of(make_package_tools, "acme")
    assert "no other does either. Install it with `%pip install`" in said
