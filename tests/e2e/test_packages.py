"""An installed package served by `--package`, without a notebook of its own."""

import subprocess
from contextlib import asynccontextmanager

import nbformat
import pytest
from clients import LOAD, connected, text_of, tool_kernel
from forked_command import list_words
from installed_packages import ACME, install
from listing import list_tools
from live import TIMEOUT, kernel_env
from mcp_types import PromptReference

pytestmark = pytest.mark.anyio
FILES = (
    ACME
    + '''
@mcp_tool(read_only=True)
def where() -> str:
    """Tell the current directory."""
    import os
    return os.getcwd()
'''
)

KINDS = '''
"""Use this with everything from Acme.

Ask for the year first.
"""
import sys
from mcp_notebook import mcp_prompt, mcp_resource, mcp_skill, mcp_tool

@mcp_prompt(complete={"country": ["DE", "FR"]})
def audit(year: int, country: str = "DE") -> str:
    """Audit the books."""
    return f"Audit {year} in {country}."

@mcp_resource("rates://{country}", complete={"country": ["DE", "FR"]})
def rates(country: str) -> dict:
    """The rates of a country."""
    return {"DE": {"rate": 0.19}}[country]

@mcp_skill
@mcp_tool(read_only=True)
def vat(net: float) -> float:
    """Use this to add the value-added tax.

    First read `rates://DE`.
    """
    return net * 1.19

mcp_skill(sys.modules[__name__])
'''
"""A package with all kinds."""


@pytest.fixture
def site(home, monkeypatch):
    """The folder in which the command is started, with a package that Python finds there."""
    folder = home / "work"
    folder.mkdir()
    install(folder, "acme", FILES, acme="acme")
    install(folder, "ledgers", KINDS, "ledgers", ledgers="ledgers")
    install(folder, "broken", "raise RuntimeError('no licence')\n", "broken-tools", broken="broken")
    monkeypatch.chdir(folder)
    return folder


async def test_its_tools_are_served_from_the_folder_of_the_command(home, site, era, transport):
    async with connected(home, era, transport, "--package", "acme") as client:
        names = [tool.name for tool in await list_tools(client)]
        assert names == ["vat", "due", "where", "ledger_book"]
        result = await client.call_tool("vat", {"country": "FR", "net": 10})
        assert text_of(result) == "12.0"
        assert text_of(await client.call_tool("where", {})) == str(site)


@pytest.mark.slow
async def test_a_notebook_beside_it_may_have_a_tool_of_the_same_name(home, site):
    cells = [LOAD, "%%mcp_tool\ndef vat() -> str:\n    'Mine.'\n    return 'mine'"]
    code = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=code), site / "bills.ipynb")
    arguments = ("bills.ipynb", "--package", "acme")
    async with connected(home, "auto", "stdio", *arguments) as client:
        names = [tool.name for tool in await list_tools(client)]
        assert {"bills_vat", "acme_vat", "due"} <= {*names}
        assert text_of(await client.call_tool("bills_vat", {})) == "mine"
        result = await client.call_tool("acme_vat", {"country": "DE", "net": 10})
        assert text_of(result) == "11.9"


@asynccontextmanager
async def served(home, site, way):
    """Yield a client of the package with all kinds, which a live notebook may offer."""
    if way == "headless":
        async with connected(home, "auto", "stdio", "--package", "ledgers") as client:
            yield client
        return
    with tool_kernel(home) as kernel:
        kernel.ok(f"import sys; sys.path.insert(0, {str(site)!r})")
        said = kernel.ok("%mcp_tool --package ledgers").text
        assert "Skill `vat`: Use this to add the value-added tax." in said
        assert said.count("Skill `") == 2
        async with connected(home, "auto", "stdio") as client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize("way", ["headless", "live"])
async def test_its_prompts_resources_and_skills_are_served_too(home, site, way):
    async with served(home, site, way) as client:
        assert [tool.name for tool in await list_tools(client)] == ["vat"]
        [prompt] = (await client.list_prompts()).prompts
        assert [argument.name for argument in prompt.arguments] == ["year", "country"]
        got = await client.get_prompt("audit", {"year": "2026"})
        assert got.messages[0].content.text == "Audit 2026 in DE."
        reference = PromptReference(name="audit")
        found = await client.complete(reference, {"name": "country", "value": "f"})
        assert found.completion.values == ["FR"]

        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "rates://{country}"
        assert '"rate"' in (await client.read_resource("rates://DE")).contents[0].text
        listed = {resource.uri for resource in (await client.list_resources()).resources}
        assert listed == {"skill://vat/SKILL.md", "skill://ledgers/SKILL.md"}
        skill = (await client.read_resource("skill://vat/SKILL.md")).contents[0].text
        assert "First read `rates://DE`." in skill
        skill = (await client.read_resource("skill://ledgers/SKILL.md")).contents[0].text
        assert "Ask for the year first." in skill


def test_some_of_them_can_be_named(home, site):
    with tool_kernel(home) as kernel:
        kernel.ok(f"import sys; sys.path.insert(0, {str(site)!r})")
        kernel.ok("%mcp_tool --package ledgers audit ledgers")
        listed = kernel.ok("%mcp list").text
        assert "audit" in listed
        assert "ledgers" in listed
        assert "vat" not in listed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acmee", "No installed package offers tools as `acmee`. Did you mean `acme`?"),
        ("broken", "`--package broken` failed:\n"),
        ("broken", "cannot be loaded: RuntimeError: no licence. `import broken` shows where."),
        ("../x", "--package takes the name of an entry point, such as acme, not '../x'."),
        ("x; print(1)", "--package takes the name of an entry point"),
    ],
)
def test_a_package_that_does_not_exist_ends_the_command_with_a_sentence(home, site, name, said):
    process = subprocess.Popen(
        list_words("serve", "--port", "0", "--package", name),
        cwd=site,
        env=kernel_env(home),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.wait(TIMEOUT) == 1
        told = process.stderr.read()
    assert said in told
    assert "Fix the cell" not in told


async def test_it_is_served_even_if_notebooks_have_to_be_trusted(home, site):
    arguments = ("--package", "acme", "--trusted-only", "--tools", "due")
    async with connected(home, "auto", "stdio", *arguments) as client:
        assert [tool.name for tool in await list_tools(client)] == ["due"]
