"""What pip and a type checker see of the package."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import grimp
from documents import README

import mcp_notebook

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def test_the_installed_version_is_the_packages_own():
    assert distribution("mcp-notebook").version == mcp_notebook.__version__


def test_the_changelog_has_a_section_for_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    assert headings[0] == mcp_notebook.__version__


def test_the_package_is_typed_and_licensed():
    assert (ROOT / "mcp_notebook" / "py.typed").exists()
    assert PROJECT["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")


def test_the_readme_of_the_distribution_leads_nowhere_that_does_not_exist():
    text = README.text
    for change in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"][
        "substitutions"
    ]:
        assert re.search(change["pattern"], text), "it changes nothing"
        text = re.sub(change["pattern"], change["replacement"], text)
    assert not re.search(r"<(img|picture|source)|\]\((?!https://)", text)
    assert "## Documentation\n\nThe source distribution has it" in text
    assert text.count("```") == README.text.count("```")


def test_no_reader_is_sent_to_an_address_or_an_index_that_does_not_exist_yet():
    assert "urls" not in PROJECT, "the repository has an address: this test has done its work"
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.toml", "*.yaml", "*.yml", "*.ipynb"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    own = {"tests/test_packaging.py", "CONTRIBUTING.md"}
    for file in set(listed.stdout.splitlines()) - own:
        text = (ROOT / file).read_text(encoding="utf-8")
        advised = re.search(
            r"(pip install|pipx run|uvx) ['\"]?mcp-notebook|github\.com/OWNER", text
        )
        assert advised is None, (file, advised)


def test_the_source_distribution_has_the_tests_and_all_that_they_read():
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    for file in listed.stdout.splitlines():  # none in an unpacked source distribution
        top = file.partition("/")[0]
        own = {".git-blame-ignore-revs", ".gitignore", "pyproject.toml"}
        assert top in {*included, *own} or top.endswith(".md"), file


def test_the_command_is_installed_and_starts():
    command = Path(sys.executable).with_name("mcp-notebook")
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_the_package_can_be_run_as_a_module():
    command = [sys.executable, "-m", "mcp_notebook", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_each_dependency_that_our_code_imports_is_declared():
    provided = {_normal(re.match(r"[\w.-]+", line)[0]) for line in PROJECT["dependencies"]}
    provided |= {
        "mcp-notebook",
        "pil",  # used where it is installed; pictures go unscaled where it is not
        "pyarrow",  # used where it is installed; tables have no Parquet where it is not
        "numpy",  # who gives samples or arrays has it
        "bokeh",  # whose plots are asked what they are made of
        *("kaleido", "vl-convert"),  # draw plots and SVG where they are installed
        "bs4",  # beautifulsoup4, by the name of its module
        "jwt",  # pyjwt, of an extra; what is missing is said
        "distributed",  # what runs on a worker of Dask's asks it who it is
        "yaml",  # pyyaml, by the name of its module
        *("jupyter-server", "tornado"),  # Jupyter Server is what imports mcp_notebook.jupyter
        "jupyter-core",  # comes with jupyter-client, which is made of it
        "pydantic-core",  # comes with pydantic, at its version
        "traitlets",  # IPython's and ipykernel's objects are made of it
        "annotationlib",  # of Python itself, since 3.14
    }
    graph = grimp.build_graph("mcp_notebook", include_external_packages=True)
    imported = {_normal(name.partition(".")[0]) for name in graph.modules}
    assert {"ipython", "msgspec", "yaml"} < imported
    assert imported - provided - {_normal(name) for name in sys.stdlib_module_names} == set()


def test_it_can_be_installed_beside_any_version_of_the_official_sdk():
    """What stands in Jupyter beside it needs another one, with another starlette."""
    required = {_normal(re.match(r"[\w.-]+", line)[0]) for line in PROJECT["dependencies"]}
    assert required.isdisjoint({"mcp", "mcp-types", "starlette", "sse-starlette"})


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_workflows_name_actions_by_their_digest():
    """A tag may be moved to other code, which would run with the right to publish."""
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: *(.*)", file.read_text(encoding="utf-8"))
        assert used
        for action in used:
            assert re.fullmatch(r"[\w-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
