"""Writes what assistants and registries list this server by, all from pyproject.toml.

``python packaging/make_listings.py`` writes the files beside this one, which assistants read from a
copy of the repository, and the links in docs/connect-a-client.md; a test compares them.
``python packaging/make_listings.py FOLDER`` writes server.json for MCP's registry and a bundle for
Claude Desktop into a folder. They name the repository and the version on PyPI, so they are made for
a release and not before.
"""

import base64
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "connect-a-client.md"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SERVER = "notebook"
"""The name of the server in a client, as `mcp-notebook install` has it."""
LAUNCH = {"command": "mcp-notebook", "args": ["stdio"]}
SHORT = "Cells of your Jupyter notebook as tools, called in the live kernel."
"""At most 100 characters, as MCP's registry asks."""
_RECIPE_HEAD = """\
# Written by packaging/make_listings.py. rattler-build reads and renders it (.ci/distribution); that
# conda-forge has all these packages in these versions has not been tried.
"""
_CONDA_NAMES = {
    "docstring-parser": "docstring_parser",
    "jupyter-client": "jupyter_client",
    "typing-extensions": "typing_extensions",
}
"""Packages that conda-forge has under another name."""
_LINKS = re.compile(
    r"(?s)(?<=<!-- links: packaging/make_listings.py -->\n\n).*?(?=\n\n<!-- end -->)"
)


def read_project() -> dict[str, Any]:
    """Return the project's metadata, with its version."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    source = (ROOT / "mcp_notebook" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', source)
    assert found is not None
    return project | {"version": found[1]}


def make_files(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of the files beside this one, by their paths."""
    files = {name: format_json(content) for name, content in make_extensions(project).items()}
    recipe = yaml.safe_dump(make_recipe(project), sort_keys=False, width=100)
    return files | {"conda/recipe.yaml": f"{_RECIPE_HEAD}{recipe}"}


def make_extensions(project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plugin of Claude Code and the extension of Gemini CLI, by the paths of files."""
    name, version, author = project["name"], project["version"], project["authors"][0]
    plugin = {"name": name, "description": SHORT, "version": version, "author": author}
    return {
        ".claude-plugin/marketplace.json": {
            "name": name,
            "owner": author,
            "metadata": {"description": project["description"]},
            "plugins": [{"name": name, "source": "./claude-code", "description": SHORT}],
        },
        "claude-code/.claude-plugin/plugin.json": plugin
        | {"license": project["license"], "keywords": project["keywords"]},
        "claude-code/.mcp.json": {"mcpServers": {SERVER: LAUNCH}},
        "gemini-cli/gemini-extension.json": {
            "name": name,
            "version": version,
            "description": SHORT,
            "mcpServers": {SERVER: LAUNCH},
        },
    }


def make_recipe(project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe of the conda package, built from this copy of the repository."""
    python = f"python {project['requires-python']}"
    # What depends on the system is optional: without uvloop, calls take longer.
    run = [_name_for_conda(line) for line in project["dependencies"] if ";" not in line]
    return {
        "package": {"name": project["name"], "version": project["version"]},
        "source": {"path": "../.."},
        "build": {
            "noarch": "python",
            "python": {"entry_points": [" = ".join(item) for item in project["scripts"].items()]},
            "script": "python -m pip install . -vv --no-deps --no-build-isolation",
        },
        "requirements": {
            "host": [python, "pip", "hatchling", "hatch-fancy-pypi-readme"],
            "run": [python, *run],
        },
        "tests": [
            {"python": {"imports": ["mcp_notebook"], "pip_check": False}},
            {"script": ["mcp-notebook --version"]},
        ],
        "about": {
            "summary": project["description"],
            "license": project["license"],
            "license_file": project["license-files"],
        },
    }


def _name_for_conda(requirement: str) -> str:
    found = re.fullmatch(r"([\w-]+)(.*)", requirement)
    assert found is not None
    return f"{_CONDA_NAMES.get(found[1], found[1])} {found[2]}"


def make_links() -> str:
    """Return the links that connect Cursor and VS Code, as Markdown."""
    config = base64.b64encode(json.dumps(LAUNCH).encode()).decode()
    cursor = f"cursor://anysphere.cursor-deeplink/mcp/install?name={SERVER}&config={quote(config)}"
    code = f"vscode:mcp/install?{quote(json.dumps({'name': SERVER, **LAUNCH}))}"
    return f"[Connect Cursor]({cursor}) · [Connect VS Code]({code})"


def make_server(project: Mapping[str, Any], readme: str) -> dict[str, Any]:
    """Return the entry for MCP's registry.

    The registry believes that the package on PyPI is the server's if its README has the server's
    name.

    Args:
        project: The project's metadata.
        readme: The text of the README.

    Raises:
        SystemExit: The repository has no address, or the README does not have the name.
    """
    address = project.get("urls", {}).get("Repository", "")
    found = re.fullmatch(r"https://github\.com/([\w-]+)/[\w.-]+", address)
    if found is None:
        raise SystemExit(
            "server.json names the repository: set project.urls.Repository in pyproject.toml first."
        )
    name, version = project["name"], project["version"]
    server = f"io.github.{found[1]}/{name}"
    if f"<!-- mcp-name: {server} -->" not in readme:
        raise SystemExit(
            "MCP's registry looks for the server's name in the README of the package: put the line "
            f"<!-- mcp-name: {server} --> below its title first."
        )
    return {
        "$schema": SCHEMA,
        "name": server,
        "description": SHORT,
        "repository": {"url": address, "source": "github"},
        "version": version,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": name,
                "version": version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "stdio"}],
            }
        ],
    }


def make_bundle(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the bundle for Claude Desktop, by their names.

    The bundle installs mcp-notebook from PyPI with uv. Claude Desktop does not see new tools, so it
    gets the tools that list and call others, as `mcp-notebook install` gives them to it.
    """
    name, version, python = project["name"], project["version"], project["requires-python"]
    manifest = {
        "manifest_version": "0.4",
        "name": name,
        "display_name": "Notebook tools",
        "version": version,
        "description": SHORT,
        "author": project["authors"][0],
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--script", "${__dirname}/server.py", "stdio", "--meta-tools"],
            },
        },
    }
    script = (
        f'# /// script\n# requires-python = "{python}"\n# dependencies = ["{name}=={version}"]\n'
        "# ///\nfrom mcp_notebook.__main__ import main\n\nmain()\n"
    )
    return {"manifest.json": format_json(manifest), "server.py": script}


def format_json(content: object) -> str:
    """Return JSON as it is written."""
    return json.dumps(content, indent=2) + "\n"


def put_links(text: str) -> str:
    """Return the text of the page with the links."""
    return _LINKS.sub(lambda _: make_links(), text)


def main() -> None:
    """Write the files."""
    project = read_project()
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        entry = format_json(make_server(project, readme))
        (folder / "server.json").write_text(entry, encoding="utf-8")
        with zipfile.ZipFile(folder / f"{project['name']}.mcpb", "w") as archive:
            for name, text in make_bundle(project).items():
                archive.writestr(name, text)
        return
    for name, text in make_files(project).items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    PAGE.write_text(put_links(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
