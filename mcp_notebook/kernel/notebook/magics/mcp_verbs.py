"""The verbs of ``%mcp``: one function each, and the table for dispatch, completion and help.

Runs on the kernel's main thread, inside the user's cell. A failure is an `McpNotebookError`, which
the magic shows as one sentence.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Literal
from unicodedata import normalize

from IPython.core.error import UsageError
from IPython.display import Audio as Player
from IPython.display import display
from msgspec import Struct

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.discovery.records import list_live_records
from mcp_notebook.errors import CheckFailed, InvalidArguments, NoSuchTool
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.notebook.background_bridge import (
    build_environment,
    start_bridge,
    stop_bridge,
)
from mcp_notebook.kernel.notebook.call_cells import format_call
from mcp_notebook.kernel.notebook.call_table import build_call_table, describe_counts, read_query
from mcp_notebook.kernel.notebook.cards.tool_view import build_table
from mcp_notebook.kernel.notebook.consent_prompts import ConsentPrompts
from mcp_notebook.kernel.notebook.loaded_extension import comes_from_jupyter
from mcp_notebook.kernel.notebook.magics.option_help import format_entry
from mcp_notebook.kernel.notebook.notebook_file import NotebookFile
from mcp_notebook.kernel.notebook.panel.side_panel_state import SidePanel
from mcp_notebook.kernel.notebook.panel.status_card import NO_TOOLS, StatusFacts, build_status
from mcp_notebook.kernel.notebook.proposing import Proposing
from mcp_notebook.kernel.notebook.public_address import (
    build_address_card,
    describe_access,
    find_public_address,
)
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.tools.context import Update
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note, print_output
from mcp_notebook.text.typed_values import TOO_DEEP, read_typed_value
from mcp_notebook.text.wording import count, suggest
from mcp_notebook.wire import messages

STOPPED = "The user stopped the call in the notebook."
"""The reason that the client of a stopped call gets."""
_CHECK_LIMIT = 600.0
"""Seconds that ``%mcp check`` may take."""
_MAX_DIGITS = 18
"""Digits of a call's number: Python refuses to parse very long ones."""
_HELP = ("-h", "--help")
_JSON_CALL = re.compile(r"\S+\s+\{")
"""A tool's name, and its arguments as an object in JSON."""


class Notebook(Struct, frozen=True, kw_only=True):
    """The objects that the verbs use."""

    registry: ToolRegistry
    """The notebook's tools."""
    invoker: Invoker
    """Runs ``%mcp call``, and has the calls of clients."""
    settings: Settings
    """For the background bridge."""
    folders: SharedFolders
    """The files that clients may see, and the refusals."""
    prompts: ConsentPrompts
    """Questions whether a call may run."""
    panel: SidePanel
    """The notebook's state, as its side panel shows it."""
    read_progress: Callable[[], Mapping[int, Update]]
    """Returns the progress of open calls, by their numbers in the log."""
    get_listed_names: Callable[[], Mapping[str, messages.ListedName]]
    """Returns the tools that clients see under other names, by their own names."""
    insert_cell: Callable[[str], None]
    """Inserts a cell with this code below the running cell."""
    id: str
    """The id of the kernel's record."""
    list_cells: Callable[[], list[str]]
    """Returns the source of the cells that have run, by their execution count."""
    file: NotebookFile
    """Has the cells of the notebook."""
    proposing: Proposing
    """The cells that clients propose."""


class Verb(Struct, frozen=True, kw_only=True):
    """One verb of ``%mcp``."""

    run: Callable[[Notebook, str], None]
    """Takes the text after the verb."""
    arguments: str = ""
    """The arguments, for the help; "" if it takes none."""
    help: str = ""
    """The effect, for the help."""
    explained_by: str = ""
    """The verb whose help is also that of this one."""


def run_verb(notebook: Notebook, line: str, expand: Callable[[str], str]) -> None:
    """Run the verb on a line of ``%mcp``.

    Args:
        notebook: The objects that the verbs use.
        line: The text after ``%mcp``.
        expand: Expands the notebook's variables in a text, as IPython does for other magics. It is
            applied only to the ``name=value`` pairs of a call, which the author types; a JSON
            object may come from a client, through a cell that ``%mcp record`` inserted.

    Raises:
        UsageError: The line is invalid.
        McpNotebookError: The verb has failed.
    """
    word, _, arguments = line.strip().partition(" ")
    arguments = arguments.strip()
    word = word or "status"
    if word not in VERBS and notebook.registry.get(word) is not None:
        raise UsageError(f"`{word}` is a tool, not a verb: write `%mcp call {word}`.")
    verb = _find_verb("help" if word in _HELP else word)
    if arguments in _HELP:
        print_output(_describe_verb(word, verb))
        return
    if arguments and not verb.arguments:
        raise UsageError(f"`%mcp {word}` takes no arguments: remove `{arguments}`.")
    if word == "call" and not _JSON_CALL.match(arguments):
        arguments = expand(arguments)
    verb.run(notebook, arguments)


def describe_verbs() -> str:
    """Return the help on all verbs, for ``%mcp?`` and ``%mcp help``."""
    return "\n".join(
        _describe_verb(name, verb) for name, verb in VERBS.items() if not verb.explained_by
    )


def _describe_verb(name: str, verb: Verb) -> str:
    if verb.explained_by:
        return _describe_verb(verb.explained_by, VERBS[verb.explained_by])
    return format_entry(f"%mcp {name} {verb.arguments}".strip(), verb.help)


def _find_verb(word: str) -> Verb:
    if word not in VERBS:
        meant = suggest(word.lower(), (*VERBS, "tool"))
        magic = "%mcp_tool" if meant == "tool" else f"%mcp {meant}"
        hint = f"Did you mean `{magic}`?" if meant else f"It has {', '.join(VERBS)}."
        raise UsageError(f"`%mcp` has no verb `{word}`. {hint}")
    return VERBS[word]


# -- one function for each verb --------------------------------------------------------------------


def _show_status(notebook: Notebook, _arguments: str) -> None:
    state = notebook.panel.read(notebook.read_progress())
    address = find_public_address(os.environ)
    facts = StatusFacts(
        counts=list(describe_counts(notebook.invoker.log.count_calls())),
        names=_describe_other_names(notebook),
        files=notebook.folders.refused.list_reasons(),
        home=notebook.settings.home,
        is_remote=address is not None,
    )
    display(build_status(state, facts, time.time()), raw=True)
    if address is not None:
        display(build_address_card(address), raw=True)


def _show_panel(notebook: Notebook, _arguments: str) -> None:
    is_seen = comes_from_jupyter() or "VS Code" in notebook.panel.frontends
    if is_seen and notebook.panel.open():
        return
    _show_status(notebook, "")


def _check_tools(notebook: Notebook, _arguments: str) -> None:
    # Another process, so that nothing of the checks stays in the kernel, and its calls run in
    # copies of the kernel while this cell waits.
    words = [sys.executable, "-P", "-m", "mcp_notebook", "check", "--live", notebook.id, "-"]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            words,
            env=build_environment(notebook.settings),
            input=json.dumps(notebook.list_cells()),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=_CHECK_LIMIT,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise CheckFailed(
            f"The check did not end within {_CHECK_LIMIT:.0f} s. Run `mcp-notebook check` on the "
            "notebook's file in a terminal, which shows how far it is."
        ) from None
    if done.returncode not in (0, 1):
        raise CheckFailed(done.stderr.strip() or "The check failed without a message.")
    print_output(done.stdout.rstrip())


def _show_tools(notebook: Notebook, _arguments: str) -> None:
    # As clients get them.
    tools = sorted(notebook.registry.tools, key=lambda tool: -tool.options.priority)
    if not tools:
        print_output(NO_TOOLS)
        return
    display(build_table(tools, notebook.get_listed_names()), raw=True)
    if lines := _describe_other_names(notebook):
        print_output("\n".join(lines))
        return
    others = [
        record.name
        for record in list_live_records(notebook.settings.records_folder)
        if record.owner == "user" and record.pid != os.getpid()
    ]
    if others:
        print_output(
            f"Other notebooks are open: {', '.join(others)}. Tools of the same name in two "
            "notebooks are served as `<notebook>_<tool>`; `mcp-notebook list` in a shell shows "
            "the names."
        )


def _describe_other_names(notebook: Notebook) -> list[str]:
    """Return sentences on the tools that clients see under other names."""
    names = notebook.get_listed_names().values()
    lines = [f"`{name.tool}` is `{name.name}` for clients. {name.reason}" for name in names]
    return [*lines, *dict.fromkeys(name.next_step for name in names)]


def _call_tool(notebook: Notebook, arguments: str) -> None:
    name, _, values = arguments.partition(" ")
    if not name:
        raise UsageError(
            "Which tool? Write `%mcp call TOOL name=value ...`; `%mcp list` shows the tools."
        )
    tool = notebook.registry.get(name)
    if tool is None:
        raise _make_unknown(notebook, name)
    refused = notebook.folders.refused.count
    given = _read_arguments(values.strip(), quotes=not tool.takes_secrets)
    aliases = tool.schema.aliases
    sent = {aliases.get(normalize("NFKC", own), own): value for own, value in given.items()}
    _show_result(notebook.invoker.run_here(name, sent))
    for reason in notebook.folders.refused.list_reasons(after=refused):
        print_note(reason)  # clients are not told that


def _show_log(notebook: Notebook, arguments: str) -> None:
    query, log = read_query(arguments), notebook.invoker.log
    every = log.list_calls()
    calls = query.select(every)
    if calls:
        is_cut = len(calls) > query.most
        note = f"{query.most:,} of {count(len(calls), 'call')}; `-n` shows more." if is_cut else ""
        display(build_call_table(calls[-query.most :], note), raw=True)
        return
    if query.tool is not None and query.tool not in {call.tool for call in every}:
        _check_exists(notebook, query.tool)
    of_tool = "" if query.tool is None else f" of {query.tool}"
    print_output(f"No call{of_tool} has failed." if query.errors else f"No calls{of_tool} yet.")


def _record(notebook: Notebook, number: str) -> None:
    log = notebook.invoker.log
    last = log.list_calls()[-1:]
    if not last:
        raise UsageError("No tool has been called yet, so there is no call to insert.")
    if number and not (number.isdecimal() and len(number) <= _MAX_DIGITS):
        raise UsageError("Which call? Write its number in the table of `%mcp log`.")
    call = log.find(int(number)) if number else last[0]
    if call is None:
        raise UsageError(
            f"The log has no call {number}. The last one is {last[0].number}; `%mcp log` lists its "
            "calls."
        )
    if not call.is_complete:
        raise UsageError(f"The arguments of call {call.number} were too large to be kept.")
    notebook.insert_cell(format_call(call.tool, call.arguments))


def _allow_call(notebook: Notebook, arguments: str) -> None:
    number, _, scope = arguments.partition(" ")
    if scope.strip() not in ("", "session"):
        raise UsageError(f"Write `%mcp allow {number}` or `%mcp allow {number} session`.")
    _decide(notebook, number, "session" if scope else "once")


def _deny_call(notebook: Notebook, arguments: str) -> None:
    _decide(notebook, arguments, "deny")


def _decide(notebook: Notebook, number: str, decision: Literal["once", "session", "deny"]) -> None:
    if not number.isdecimal():
        open_ones = ", ".join(map(str, notebook.prompts.numbers)) or "none"
        raise UsageError(f"Which question? Write its number. Open questions: {open_ones}.")
    print_output(notebook.prompts.decide(int(number), decision))


def _propose(notebook: Notebook, arguments: str) -> None:
    queue = notebook.proposing.queue
    numbers = {str(each.shown.number): each.shown.number for each in queue.undecided}
    match arguments.split(maxsplit=2):
        case []:
            print_output(notebook.proposing.describe())
        case ["on" | "off" as word]:
            print_output(notebook.proposing.switch(on=word == "on"))
        case ["accept", number] if number in numbers:
            shown = queue.accept_by_hand(numbers[number])
            notebook.insert_cell(shown.source)
            kind = " It is Markdown: change the cell's type." * (shown.kind == "markdown")
            print_output(f"The cell is below, and has not run.{kind}")
        case ["reject", number, *words] if number in numbers:
            print_output(queue.reject(numbers[number], "".join(words)))
        case _:
            raise UsageError(
                "`%mcp propose` takes `on`, `off`, `accept N` or `reject N [WORD ...]`, with the "
                f"number of an open proposal: {', '.join(numbers) or 'there is none'}."
            )


def _stop_calls(notebook: Notebook, number: str) -> None:
    calls = [call for call in notebook.invoker.calls if number in ("", str(call.number))]
    if number and not calls:
        open_ones = ", ".join(str(call.number) for call in notebook.invoker.calls) or "none"
        raise UsageError(f"No call {number} waits or runs. Open calls: {open_ones}.")
    for call in calls:
        notebook.invoker.cancel(call, STOPPED, "you, with `%mcp stop`")
        print_output(f"Stopping {call.tool}, call {call.number}.")
    if not calls:
        print_output("No call waits or runs.")


def _serve(notebook: Notebook, arguments: str) -> None:
    settings = notebook.settings
    if arguments:
        if arguments != "--stop":
            raise UsageError(f"`%mcp serve` takes only `--stop`: remove `{arguments}`.")
        stopped = stop_bridge(settings)
        text = "Stopped serving over HTTP." if stopped else "Nothing was being served over HTTP."
        print_output(text)
        return
    bridge = start_bridge(settings)
    address = find_public_address(os.environ)
    print_output(
        f"Serving all open notebooks at {bridge.url}\n"
        + "".join(f"Note: {notice}\n" for notice in bridge.notices)
        + (
            f"Only programs on this server reach that. {describe_access(address)}\n"
            if address
            else ""
        )
        + f"The token is in {settings.token_place}. To connect Claude Code, for "
        "example, run in a terminal:\n\n"
        "  mcp-notebook install claude-code --http\n\n"
        "With `--print`, it shows the settings to copy. `%mcp serve --stop` stops serving."
    )


def _help(_notebook: Notebook, word: str) -> None:
    print_output(_describe_verb(word, _find_verb(word)) if word else describe_verbs())


VERBS: Mapping[str, Verb] = {
    "status": Verb(
        run=_show_status,
        help="show the address, clients, tools, running and last calls, open questions and "
        "problems (or: %mcp)",
    ),
    "panel": Verb(
        run=_show_panel,
        help="open the side panel, which shows clients, tools and calls; where there is none, this "
        "is `status`",
    ),
    "stop": Verb(
        run=_stop_calls, arguments="[N]", help="stop call N, or all calls that wait or run"
    ),
    "list": Verb(run=_show_tools, help="list the tools with their parameters, as clients see them"),
    "call": Verb(
        run=_call_tool,
        arguments="TOOL name=value ...",
        help='call a tool as a client would (or: %mcp call TOOL {"name": "value"})',
    ),
    "check": Verb(
        run=_check_tools,
        help="test and review the tools; read-only ones are called with their examples, in copies "
        "of the kernel",
    ),
    "log": Verb(
        run=_show_log,
        arguments="[TOOL] [-n 20] [--errors]",
        help="show the latest calls: time, client, arguments, and the outcome",
    ),
    "record": Verb(
        run=_record,
        arguments="[N]",
        help="insert call N of the log (default: the last) below as a cell that makes it again",
    ),
    "allow": Verb(
        run=_allow_call,
        arguments="N [session], or %mcp deny N",
        help="approve or refuse the call in question N; session: also approve later calls",
    ),
    "deny": Verb(run=_deny_call, arguments="N", explained_by="allow"),
    "propose": Verb(
        run=_propose,
        arguments="[on | off | accept N | reject N [WORD ...]]",
        help="let clients propose cells, or no longer; list them; accept N: put its source into "
        "the next cell, without running it; reject N: tell its client why",
    ),
    "serve": Verb(
        run=_serve,
        arguments="[--stop]",
        help="serve all open notebooks over HTTP, in the background; --stop: stop serving",
    ),
    "help": Verb(run=_help, arguments="[VERB]", help="explain the verbs, or one (%mcp VERB -h)"),
}
"""All verbs, in the order of the help."""


# -- arguments -------------------------------------------------------------------------------------


def _check_exists(notebook: Notebook, name: str) -> None:
    if notebook.registry.get(name) is None:
        raise _make_unknown(notebook, name)


def _make_unknown(notebook: Notebook, name: str) -> NoSuchTool:
    names = tuple(tool.name for tool in notebook.registry.tools)
    return NoSuchTool(name, names, is_any=True)


def _read_arguments(text: str, *, quotes: bool) -> dict[str, Any]:
    """Parse the arguments of a call: a JSON object, or ``name=value`` pairs.

    Args:
        text: As written in the cell.
        quotes: Whether an error may quote it; false for secrets, since outputs are stored.

    Raises:
        UsageError: They are neither.
        InvalidArguments: They are nested too deeply.
    """
    if text.startswith("{"):
        try:
            return dict(json.loads(text))
        except RecursionError:
            raise InvalidArguments(f"The arguments are {TOO_DEEP}") from None
        except ValueError as error:
            raise UsageError(f"The arguments are not a valid JSON object: {error}.") from None
    arguments = {}
    for word in _split(text, quotes=quotes):
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"{f'`{word}`' if quotes else 'A word'} is not an argument: write `name=value`, or "
                "all arguments as one JSON object."
            )
        try:
            arguments[name] = read_typed_value(value)
        except ValueError as error:
            raise InvalidArguments(f"{name}: {error}") from None
    return arguments


def _split(text: str, *, quotes: bool) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        where = f" in {text!r}" if quotes else ""
        raise UsageError(
            f"{error}{where}: close the quote, or put it between quotes of the other kind."
        ) from None


# -- the result of a call --------------------------------------------------------------------------


def _show_result(result: Result) -> None:
    """Print the texts of a result, and display its images and audio."""
    if result.is_error:
        print_output("The client would get an error:")
    for block in result.content:
        _show_block(block)


def _show_block(block: ContentBlock) -> None:
    match block:
        case Text():
            print_output(block.text)
        case Image():
            display({block.mime_type: b64encode(block.data).decode()}, raw=True)
        case ResourceLink():
            print_output(f"{block.about}: {block.uri}")
        case Audio():
            player = Player(data=block.data)
            # It guesses types only from file names, and does not escape this in its HTML.
            player.mimetype = escape(block.mime_type)
            display(player)
        case Resource(data=str(text)):
            print_output(f"{block.uri} ({block.mime_type}):\n{text}".lstrip())
        case Resource(data=bytes(data)):
            print_output(f"{block.uri} ({block.mime_type}, {len(data):,} bytes)".lstrip())
            if block.mime_type.startswith("image/"):
                _show_block(Image(data, block.mime_type))
            elif block.mime_type.startswith("audio/"):
                _show_block(Audio(data, block.mime_type))
