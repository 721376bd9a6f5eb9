"""The documents for people: README, CONTRIBUTING, CHANGELOG and the pages of the site."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SETUP = [
    'pip install -e ".[demo]" && mcp-notebook serve notebooks/weather.ipynb',
    'pip install -e ".[demo,test]" && pytest',
]
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Document:
    """One Markdown file."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def blocks(self) -> list[tuple[str, str]]:
        """Language and text of each code block, in order."""
        return _BLOCK.findall(self.text)

    @cached_property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _BLOCK.sub("", self.text)

    @cached_property
    def inline(self) -> list[str]:
        """What stands between backticks in the prose."""
        return re.findall(r"`([^`\n]+)`", self.prose)

    @cached_property
    def links(self) -> list[str]:
        """Addresses of links and pictures."""
        return [
            *_LINK.findall(re.sub(r"`[^`\n]+`", "`...`", self.prose)),
            *re.findall(r'(?:src|srcset|href)="([^"]+)"', self.prose),
        ]

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub and the site make them."""
        titles = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}

    def code(self, language: str) -> list[str]:
        """Return the code blocks in one language."""
        return [code for kind, code in self.blocks if kind == language]

    @property
    def shell_lines(self) -> list[str]:
        return [line for code in self.code("bash") for line in code.splitlines()]

    def servers(self) -> Iterator[dict]:
        """Return the servers of each client configuration."""
        texts = [*map(json.loads, self.code("json")), *map(yaml.safe_load, self.code("yaml"))]
        for configuration in texts:
            if "command" in configuration:
                yield configuration
            else:
                (servers,) = configuration.values()
                yield from servers.values()

    def commands(self) -> Iterator[tuple[str, ...]]:
        """Return the arguments of each ``mcp-notebook`` that it tells to type or configure."""
        lines = [*self.shell_lines, *(t for t in self.inline if t.startswith("mcp-notebook "))]
        for line in lines:
            words = shlex.split(line.replace("&&", "\n").rpartition("\n")[2], comments=True)
            if "mcp-notebook" in words:
                yield tuple(words[words.index("mcp-notebook") + 1 :])
        for server in self.servers():
            if "args" in server:  # the others have an address
                yield tuple(server["args"])


README = Document(ROOT / "README.md")
GETTING_STARTED = Document(DOCS / "getting-started.md")
PAGES = [Document(path) for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
"""The pages of the site."""
TOP_LEVEL = [Document(ROOT / name) for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
DOCUMENTS = [README, *TOP_LEVEL, *PAGES]


def page(name: str) -> Document:
    """Return a page of the site by its path below ``docs/``."""
    (found,) = (document for document in PAGES if document.path == DOCS / name)
    return found
