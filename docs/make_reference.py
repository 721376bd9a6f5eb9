"""Writes the pages of ``docs/reference/`` that list what the code offers.

Options, settings, commands, values and ``_meta`` keys, from where the code defines them. Run by
hand after a change there: ``python docs/make_reference.py``. A test compares the pages with the
code, so that they cannot drift.
"""

import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from mcp_notebook import meta_keys
from mcp_notebook.cli import main
from mcp_notebook.clients.client import Client, Machine
from mcp_notebook.clients.known_clients import CLIENTS
from mcp_notebook.kernel.results.values import RULES
from mcp_notebook.kernel.tools.option_table import explain_safety, list_options
from mcp_notebook.settings.limits import SETS, Limits, is_limit
from mcp_notebook.settings.settings import Settings

FOLDER = Path(__file__).parent / "reference"
ASSISTANTS = FOLDER.parents[1] / "tests" / "assistants"
"""Where the tests say what they have seen of each client."""
FRAMEWORKS = ASSISTANTS.parent / "frameworks"
"""Where the tests say what they have seen of each framework."""
HOME = Path("~/.mcp-notebook")
"""The default of `Settings.home`, for any reader."""
NOTE = "<!-- Written by docs/make_reference.py from the code: edit there. -->"


# -- building blocks -------------------------------------------------------------------------------


def read_docs(owner: type | ModuleType) -> dict[str, str]:
    """Return the strings below the fields of a class, or the constants of a module, by name."""
    tree = ast.parse(inspect.getsource(owner))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else tree.body
    docs = {}
    for statement, following in pairwise(body):
        target = getattr(statement, "target", None) or getattr(statement, "targets", [None])[0]
        text = getattr(getattr(following, "value", None), "value", None)
        if isinstance(target, ast.Name) and isinstance(text, str):
            docs[target.id] = format_text(text)
    return docs


def format_text(text: str) -> str:
    """Return a docstring as Markdown on one line."""
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in cells)


def format_page(title: str, *parts: str) -> str:
    """Return a page with its title and the note on where it comes from."""
    return "\n\n".join([f"# {title}", NOTE, *parts]) + "\n"


# -- the pages -------------------------------------------------------------------------------------


def options_page() -> str:
    """Return the page on what an author can say about a tool."""

    def rows(*, is_rare: bool) -> list[Sequence[str]]:
        return [
            (
                ", ".join(f"`%%mcp_tool {example}`" for example in option.line),
                f"`{option.keyword}`",
                option.default,
                option.text,
            )
            for option in list_options()
            if option.is_rare is is_rare
        ]

    head = ["On the line", "As a keyword", "Default", "What it does"]
    prefix = (
        "`%mcp_tool my_diary --prefix diary_`",
        '`@mcp_tools(prefix="diary_")`',
        "none",
        "What the names of an object's tools begin with.",
    )
    return format_page(
        "Options",
        "What you can say about a tool: on the line of `%%mcp_tool` or `%mcp_tool`, as a keyword "
        "of `@mcp_tool`, and as a keyword of `Tool`. What you can say about a parameter is in "
        "[How arguments are checked](../guides/declaring-tools.md#how-arguments-are-checked).",
        "## Common options",
        explain_safety(on_line=True),
        format_table(head, rows(is_rare=False)),
        "## Rare options",
        format_table(head, [*rows(is_rare=True), prefix]),
        "## Prompts",
        "`%%mcp_prompt`, `%mcp_prompt` and `@mcp_prompt` take "
        f"{', '.join(f'`{option.name}`' for option in list_options('prompt'))}. All but `complete` "
        "are those of tools.",
        *(
            f"`{option.name}` (`%%mcp_prompt {option.line[0]}`, `{option.keyword}`): {option.text}"
            for option in list_options("prompt")
            if option.name == "complete"
        ),
        "## Resources",
        "`%%mcp_resource` and `@mcp_resource` take the same, and `mime_type`.",
        *(
            f"`{option.name}` (`{option.line[0]}`, `{option.keyword}`): {option.text}"
            for option in list_options("resource")
            if option.name == "mime_type"
        ),
        "## `_meta` keys",
        "What mcp-notebook adds to the `_meta` of tools and results. The option `meta` adds your "
        "own, with keys that a client knows or that begin with a reversed domain of yours. MCP's "
        f"own prefixes and `{meta_keys.PREFIX}` are reserved.",
        _meta_keys(),
    )


def settings_page() -> str:
    """Return the page of the settings."""
    docs, settings = read_docs(Settings), Settings(home=HOME)
    rows = [
        (
            f"`{option.name}`",
            f"`{option.metadata['env']}`",
            _format_default(getattr(settings, option.name)),
            docs[option.name],
        )
        for option in fields(Settings)
        if not is_limit(option)
    ]
    return format_page(
        "Settings",
        "Set these in the environment of the notebook's kernel, of `mcp-notebook`, or of both. "
        "Some are options of the [command line](cli.md) too. `mcp-notebook doctor --settings` "
        "prints what they are and where each value comes from.",
        format_table(["Setting", "Environment variable", "Default", "Meaning"], rows),
    )


def limits_table() -> str:
    """Return the table of all limits, for the page of limits."""
    docs = read_docs(Limits)
    rows = [
        (
            f"`{limit.name}`",
            *(f"{limit.metadata['sets'][name]:,}" for name in SETS),
            docs[limit.name],
        )
        for limit in fields(Limits)
    ]
    return format_table(["Limit", *(f"`{name}`" for name in SETS), "Meaning"], rows)


def _format_default(value: object) -> str:
    return "none" if value is None else f"`{value}`"


def cli_page() -> str:
    """Return the page of the command."""
    command = typer.main.get_command(main.app)
    verbs = list(_commands(command, command.name or ""))
    rows = [row for _, verb in verbs for row in _parameter_rows(verb) if row[1]]
    shared = [row for row in dict.fromkeys(rows) if rows.count(row) > 1]
    head = ["Parameter", "What it does"]
    parts = [
        str(command.help),
        (
            "`--help` explains each command. The exit status is 0 on success, 1 on failure, 2 for "
            "wrong usage, and 130 if interrupted."
        ),
    ]
    for path, verb in verbs:
        parts += [f"## {path}", format_text(str(verb.help))]
        if not hasattr(verb, "commands"):
            parts.append(f"```text\n{path} {_usage(verb)}\n```")
            all_rows = list(_parameter_rows(verb))
            own = [row for row in all_rows if row[1] and row not in shared]
            parts += [format_table(head, own)] if own else []
            also = [
                f"`{form.strip('`').split()[0].strip(',')}`"
                for form, text in all_rows
                if (form, text) in shared
            ]
            below = "[below](#options-of-several-commands)"
            parts += [f"Explained {below}: {', '.join(also)}."] * bool(also)
            named = [form for form, text in all_rows if not text]
            parts += [f"[Settings](settings.md) explains: {', '.join(named)}."] * bool(named)
        if verb.epilog:
            text, _, example = verb.epilog.partition("Example")
            parts += [format_text(text)] if text else []
            _, _, lines = example.partition(":")
            code = lines.strip()
            language = "json" if code.startswith("{") else "bash"
            parts.append(f"```{language}\n{code}\n```")
    parts += ["## Options of several commands", format_table(head, shared)]
    return format_page("Command line", *parts)


def _commands(group: Any, path: str) -> Iterable[tuple[str, Any]]:
    for name, command in group.commands.items():
        verb = command.load() if hasattr(command, "load") else command
        yield f"{path} {name}", verb
        if hasattr(verb, "commands"):
            yield from _commands(verb, f"{path} {name}")


def _usage(verb: Any) -> str:
    words = ["[OPTIONS]"]
    for argument in verb.params:
        if argument.param_type_name == "argument":
            word = argument.metavar or argument.name.upper()
            word = word if argument.required else f"[{word}]"
            words.append(f"{word}..." if argument.nargs == -1 else word)
    return " ".join(words)


def _parameter_rows(verb: Any) -> Iterator[tuple[str, str]]:
    """Yield the form of each parameter, and what it does; "" if a setting's text says that."""
    settings = read_docs(Settings)
    for parameter in verb.params:
        if getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            form = parameter.metavar or parameter.name.upper()
        else:
            value = "" if parameter.is_flag else parameter.metavar or "VALUE"
            form = f"{', '.join(parameter.opts)} {value}".strip()
        text = format_text(parameter.help or "")
        setting = settings.get(parameter.name, "").removeprefix("Whether ").removeprefix("to ")
        is_setting = setting[1:] == text[1:] != ""
        yield f"`{form}`", "" if is_setting else text


def _meta_keys() -> str:
    """Return the table of the ``_meta`` keys."""
    docs = read_docs(meta_keys)
    rows = [
        (f"`{key}`", docs[name])
        for name, key in vars(meta_keys).items()
        if name.isupper() and not name.startswith("_") and key != meta_keys.PREFIX
    ]
    return format_table(["Key", "What it holds"], rows)


VALUES_TEXT = """\
## One of several representations

If a notebook could show a value in several forms, the model gets the first of these: image, plot, \
Markdown, JSON, LaTeX (with its plain text), SVG, plain text, HTML. Two exceptions: LaTeX comes \
before an image of the same formula, and a plain text that only says `<Map object at 0x7f...>` \
comes last. JavaScript is not sent.

- HTML is sent as Markdown, with the images and sounds in it. For a video or a page within it, its \
address is sent.
- SVG is sent as an image, if what draws it is installed, with a link to the source; otherwise as \
its source or its texts. See [Plots](../guides/results.md#plots).

## Values that fail

A repr that fails or never ends, invalid image data: the client gets a \
one-line explanation, and the kernel is unaffected."""


def values_page() -> str:
    """Return the page on what becomes of each type of value."""
    return format_page(
        "Values",
        "What the client gets for each type of value. The first matching row applies. More about "
        "[files](../guides/results.md#files), [tables](../guides/results.md#tables), "
        "[plots](../guides/results.md#plots) and "
        "[your own types](../guides/results.md#your-own-types).",
        format_table(["The value", "The client gets"], [(r.values, r.content) for r in RULES]),
        VALUES_TEXT,
    )


_MACHINES = {
    "": Machine(platform="linux", home=Path("~"), folder=Path(), env={}),
    "macOS: ": Machine(platform="darwin", home=Path("~"), folder=Path(), env={}),
    "Windows: ": Machine(
        platform="win32", home=Path("~"), folder=Path(), env={"APPDATA": "%APPDATA%"}
    ),
}


def clients_table() -> str:
    """Return the table of the clients that can be set up, for the page that says how."""
    tokens = {"file": "reads the token's file", "variable": "`MCP_NOTEBOOK_TOKEN`", "nowhere": "no"}
    rows = [
        (
            f"`{client.name}`",
            client.title,
            _format_files(client),
            "yes" if client.sees_new_tools else "no: gets `--meta-tools`",
            tokens[client.header_from],
        )
        for client in CLIENTS.values()
    ]
    head = ["CLIENT", "Program", "Its settings", "Sees new tools", "`--http`"]
    return format_table(head, rows)


def _format_files(client: Client) -> str:
    files: dict[str, str] = {}
    for label, machine in _MACHINES.items():
        file = f"`{client.find_file(machine).as_posix()}`"
        if file not in files.values():
            files[label] = file
    return ", ".join(label + file for label, file in files.items())


def clients_page() -> str:
    """Return the page on what works in which assistant and framework, as their tests have seen."""
    seen = tomllib.loads((ASSISTANTS / "seen.toml").read_text("utf-8"))
    packages = json.loads((ASSISTANTS / "package.json").read_text("utf-8"))["dependencies"]
    assistants = seen["assistants"]
    rows = [
        [text, *(assistant[row] for assistant in assistants.values())]
        for row, text in seen["rows"].items()
    ]
    versions = [f"{packages[assistant['package']]}" for assistant in assistants.values()]
    return format_page(
        "Clients",
        "What works in which assistant and framework. Tests start each of them with a real "
        "notebook and compare these tables with what its model is shown; only the model is "
        "simulated. [`mcp-notebook install`](../connect-a-client.md) sets up those that it knows.",
        "## Assistants",
        *_format_seen(["", *assistants], [["Version", *versions]], rows),
        "- *as text*: the model reads the error, but it is not marked as one.\n"
        "- *on screen*: only with a screen, which the test has not.\n"
        "- *texts only*: the parameters of the prompt have to be `str`.\n"
        "- *all texts*: its model reads the texts, not the pictures.\n"
        "- *without templates*, *listed ones*: its model is not told of templates.\n"
        "- *indirectly*: the result of the next call names a new tool, which its model reaches "
        "through "
        "[`call_notebook_tool`](../connect-a-client.md#a-client-that-does-not-see-new-tools).\n"
        "- *does not say*: no command shows whether a server is connected.",
        "A prompt `report` is the command `/mcp__notebook__report 2026` in Claude Code, "
        "`/report 2026` in Gemini CLI and Qwen Code, and `/notebook:report 2026` in opencode. A "
        "command of the program's own wins. `@notebook:data://orders` in a message adds that "
        "resource.",
        *_framework_parts(),
    )


def _framework_parts() -> list[str]:
    """Return the part of the page on what works in which framework."""
    seen = tomllib.loads((FRAMEWORKS / "frameworks.toml").read_text("utf-8"))
    frameworks = seen["frameworks"]
    rows = [
        [text, *(framework["seen"][row] for framework in frameworks.values())]
        for row, text in seen["rows"].items()
    ]
    packages = [framework["packages"][0].partition("==") for framework in frameworks.values()]
    return [
        "## Frameworks",
        *_format_seen(
            ["", *frameworks],
            [
                ["Package", *(f"`{name.partition('[')[0]}`" for name, _, _ in packages)],
                ["Version", *(version for _, _, version in packages)],
            ],
            rows,
        ),
        (
            "- *as base64*: the picture is some ten thousand characters of text for the model. Let "
            "such an agent call tools that return text or tables.\n"
            "- *in its own words*: it checks arguments itself, before it calls the tool.\n"
            "- *stored, without the text*: it takes only the first block of a result."
        ),
        (
            "AutoGen lists the tools again for each turn of its model, the others list them once. "
            "smolagents treats parameters with a default as required. Most frameworks identify "
            "themselves as `mcp`, so all get what the least capable of them can handle: addresses "
            "as text, and the first picture before the text that was printed for it."
        ),
        "### Prompts, resources and skills",
        "Nothing gives these to a model by itself: your program gets a prompt or reads a resource.",
        *_format_kinds(frameworks),
        "- *fails*: `get_prompt` raises an error if a message is not text.",
    ]


def _format_seen(
    head: Sequence[str], first: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]
) -> list[str]:
    """Return a table of what the tests have seen, and a sentence on what all programs do."""
    differing = [row for row in rows if set(row[1:]) != {"yes"}]
    same = [row[0] for row in rows if row not in differing]
    sentence = "; ".join(text[0].lower() + text[1:] for text in same)
    return [format_table(head, [*first, *differing]), f"Each of them {sentence}."]


def _format_kinds(frameworks: Mapping[str, Any]) -> list[str]:
    """Return the table of what clients of frameworks do with prompts, resources and skills."""
    kinds = tomllib.loads((FRAMEWORKS / "kinds.toml").read_text("utf-8"))
    packages = [
        (kinds.get(name) or frameworks[name])["packages"][0].partition("==")
        for name in kinds["seen"]
    ]
    rows = [
        [text, *(seen[row] for seen in kinds["seen"].values())]
        for row, text in kinds["rows"].items()
    ]
    versions = [version for _, _, version in packages]
    return _format_seen(["", *kinds["seen"]], [["Version", *versions]], rows)


PAGES = {
    "values.md": values_page,
    "options.md": options_page,
    "settings.md": settings_page,
    "cli.md": cli_page,
    "clients.md": clients_page,
}

BEGIN, END = "<!-- Written by docs/make_reference.py from the code: -->", "<!-- End -->"
PARTS = {"connect-a-client.md": clients_table, "operate/limits.md": limits_table}
"""What pages that are written by hand have between two comments."""


def fill_in(text: str, part: str) -> str:
    """Return a page's text with a generated part in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, make_page in PAGES.items():
        (folder / name).write_text(make_page(), encoding="utf-8", newline="\n")
    for name, make_part in PARTS.items():
        page = folder.parent / name
        text = fill_in(page.read_text(encoding="utf-8"), make_part())
        page.write_text(text, encoding="utf-8", newline="\n")
