"""Judges the answers to the tools' examples: do they come, fit, stay the same, and change nothing?

Runs in the process of the command. Pure.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from jsonschema.validators import validator_for

from mcp_notebook import meta_keys
from mcp_notebook.check.findings import Finding
from mcp_notebook.check.objects import judge_changes
from mcp_notebook.check.subject import Answer, CheckedTool, Subject, Trial, is_read_only
from mcp_notebook.text.wording import count

MAX_CHARS = 20_000
"""Characters of an answer that a model still reads well, about 5,000 tokens."""
_MAX_LISTED = 5
"""Names that a finding lists."""
_COPY_REFUSED = re.compile(r"The tool .*? cannot run in a copy of the kernel .*?: (.*?)\. Declare ")
"""The error for a tool that a copy of the kernel cannot run, with the cause."""
_URI = re.compile(r"notebook://\S+")
"""Addresses of originals, which differ from call to call."""
_CHANGES: Mapping[str, str] = {
    "new name": "defines the variable {}",
    "removed name": "deletes the variable {}",
    "rebound name": "assigns to the variable {}",
    "changed value": "changes {} in place",
    "new file": "writes the file {}",
    "changed file": "changes the file {}",
    "removed file": "deletes the file {}",
    "environment": "changes the environment variable {}",
    "working directory": "changes the working directory to {}",
}
"""What a call changed, in words."""


def judge_answers(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the tools' examples and the answers to them."""
    for progress in subject.failures:
        what = "The cell fails, so `mcp-notebook serve` would stop here."
        if progress.is_refusal:
            what = "Not everything that the cell declares can be a tool."
        yield Finding(
            tool=None,
            rule="failing-cell",
            severity="error",
            cell=progress.done,
            reason=f"{what}\n{progress.failure}",
            advice="Correct the cell.",
        )
    for tool in subject.list_tools():
        yield from _judge_tool(subject, tool)
    yield from _judge_untried(subject)


def _judge_untried(subject: Subject) -> Iterator[Finding]:
    """Yield the tools that did not run in a copy of the kernel, together if for the same reason."""
    declared = {tool.name: is_read_only(tool) for tool in subject.list_tools()}
    tools: dict[str, list[str]] = defaultdict(list)
    for trial in subject.trials:
        is_tried = trial.is_late or trial.ended_process or trial.changes is not None
        text = trial.failure or trial.text
        cause = _COPY_REFUSED.match(text)
        if not declared.get(trial.tool, False):
            continue  # its code is called nevertheless
        names = tools[_shorten(cause[1] if cause else text)]
        if not is_tried and trial.tool not in names:
            names.append(trial.tool)
    for reason, names in tools.items():
        if names:
            listed = [f"`{name}`" for name in names[:_MAX_LISTED]]
            more = [f"{len(names) - _MAX_LISTED} more"] if len(names) > _MAX_LISTED else []
            yield Finding(
                tool=names[0] if len(names) == 1 else None,
                rule="not-tried",
                severity="note",
                reason=f"{_join([*listed, *more])} could not be called in a copy of the kernel, so "
                f"what they change is not known: {reason.removesuffix('.')}.",
                advice="Read their code for that.",
            )


def _judge_tool(subject: Subject, tool: CheckedTool) -> Iterator[Finding]:
    yield from _judge_examples(tool)
    trials = [
        trial
        for trial in subject.trials
        if trial.tool == tool.name
        and (trial.is_late or trial.ended_process or trial.changes is not None)
    ]
    changes = dict.fromkeys(
        (str(kind), str(name)) for trial in trials for kind, name in trial.changes or ()
    )
    if not is_read_only(tool):
        seen = [name for kind, name in changes if kind == "changed value"]
        yield from judge_changes(tool, seen)
        # What copies cannot run is not known; what they changed is what the tool is there for.
        if any(trial.changes is not None for trial in trials) and not changes:
            yield tool.make_finding(
                "unsaid-read-only",
                "note",
                reason="Its calls changed nothing here: no variable, file, socket or process. "
                "Clients ask the user before each call of a tool that may write.",
                advice="If that holds for all its calls, add `--read-only`.",
            )
        changes = {}
    else:
        changes = {each: None for each in changes if each[0] in _CHANGES}
        if changes:
            words = [_CHANGES[kind].format(f"`{name}`") for kind, name in changes]
            yield tool.make_finding(
                "changes-state",
                "error",
                reason=f"It is declared read-only, but it {_join(words)}. Clients call read-only "
                "tools without asking the user.",
                advice="Work on a copy, or remove `--read-only`.",
            )
    groups: dict[str, list[Answer]] = defaultdict(list)
    answers = (answer for answer in subject.answers if answer.tool == tool.name)
    for answer in chain(trials, answers):
        groups[answer.example].append(answer)
    for example, group in groups.items():
        problem = _judge_end(tool, example, group) or _judge_structured(tool, example, group)
        if problem is None and not changes:  # of which other answers may be a consequence
            problem = _judge_sameness(tool, example, group)
        yield from filter(None, (problem, _judge_size(tool, example, group)))


def _judge_examples(tool: CheckedTool) -> Iterator[Finding]:
    """Yield the examples that the published schema refuses, although the tool accepts them."""
    schema = tool.entry.get("inputSchema", {})
    for example in tool.info.examples:
        reason = _explain_mismatch(example, schema)
        if reason is not None:
            yield tool.make_finding(
                "example-schema",
                "error",
                reason=f"The example {_dump(example)} does not fit the schema of the parameters: "
                f"{reason}. A model that follows it is refused by clients that check arguments.",
                advice="Write the example's values as the schema describes them.",
            )


def _judge_end(tool: CheckedTool, example: str, answers: Sequence[Answer]) -> Finding | None:
    """Return the finding about an example that has no good answer."""
    ended = next((each for each in answers if each.ended_process), None)
    if ended is not None:
        return tool.make_finding(
            "ends-kernel",
            "error",
            reason=f"The example {example} ends the process of the kernel, and with it all "
            f"that the notebook has in memory: {_shorten(ended.failure or ended.text)}",
            advice="Raise an error in place of `exit`. If it ran out of memory, do less in a call.",
        )
    # A copy of the kernel may hang where the kernel does not.
    late = next((each for each in _select_real(answers) if each.is_late), None)
    if late is not None:
        return tool.make_finding(
            "no-answer",
            "error",
            reason=f"The example {example} has no answer after {late.seconds:.0f} s. Many clients "
            "give up after a minute, and the call keeps the kernel busy.",
            advice="Give the tool a `--timeout`, do less in one call, or raise the limit of this "
            "check with `--timeout`.",
        )
    failed = next((answer for answer in answers if answer.is_error), None)
    if failed is None:
        return None
    return tool.make_finding(
        "failing-example",
        "error",
        reason=f"The example {example} is answered with an error: {_shorten(failed.text)}",
        advice="Correct the tool or its example: models copy examples.",
    )


def _judge_structured(tool: CheckedTool, example: str, answers: Sequence[Answer]) -> Finding | None:
    """Return the finding about an answer that a client does not take."""
    reason = next((answer.failure for answer in answers if answer.failure), None)
    schema = tool.entry.get("outputSchema")
    modern = next((each for each in answers if each.era == "modern" and each.result), None)
    if reason is None and schema is not None and modern is not None:
        reason = _explain_mismatch(modern.result.get("structuredContent"), schema)
    if reason is None:
        return None
    return tool.make_finding(
        "answer-schema",
        "error",
        reason=f"Clients refuse the answer to the example {example}: {_shorten(reason)}",
        advice="Return what the annotation or the output schema says, or correct that.",
    )


def _judge_sameness(tool: CheckedTool, example: str, answers: Sequence[Answer]) -> Finding | None:
    """Return the finding about an example with several answers."""
    if (tool.info.meta or {}).get(meta_keys.CACHE) == "ephemeral":  # its author says so
        return None
    # In a copy, nothing is kept for the links to what an answer left out.
    texts = list(dict.fromkeys(_URI.sub("", answer.text) for answer in _select_real(answers)))
    if len(texts) == 1:
        return None
    before, after = _find_difference(texts[0], texts[1])
    return tool.make_finding(
        "changing-answer",
        "warning",
        reason=f"The example {example} has another answer with each call: first {before!r}, then "
        f"{after!r}. A model that calls twice cannot tell which one holds.",
        advice="Fix the seed or the order. If the answer is meant to change, say so with "
        "`--cache ephemeral`.",
    )


def _judge_size(tool: CheckedTool, example: str, answers: Sequence[Answer]) -> Finding | None:
    size = max(len(answer.text) for answer in answers)
    if size <= MAX_CHARS:
        return None
    return tool.make_finding(
        "large-answer",
        "warning",
        reason=f"The answer to the example {example} has {count(size, 'character')}, and a model "
        f"reads each of them. Above {MAX_CHARS:,}, clients cut answers and models overlook parts.",
        advice="Return a summary or a page, with parameters to ask for more.",
    )


def _select_real(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Return the answers to clients, or all if there are only trials."""
    return [answer for answer in answers if not isinstance(answer, Trial)] or answers


def _find_difference(one: str, other: str) -> tuple[str, str]:
    """Return the first lines that differ."""
    pairs = zip((*one.splitlines(), ""), (*other.splitlines(), ""), strict=False)
    before, after = next(((a, b) for a, b in pairs if a != b), ("", ""))
    return before[:80], after[:80]


def _explain_mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return why a value does not fit a schema; None if it does."""
    validator = validator_for(schema)(schema)
    error = next(iter(validator.iter_errors(value)), None)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    return f"{place}: {_shorten(error.message)}" if place else _shorten(error.message)


def _dump(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:300]}..."  # noqa: PLR2004 - for one sentence


def _join(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
