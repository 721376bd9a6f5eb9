"""What follows a verb of ``%mcp`` that takes one name and options without values.

Runs on the kernel's main thread, inside the user's cell. Pure. Verbs with other lines read them
themselves.
"""

import shlex
from collections.abc import Sequence

from IPython.core.error import UsageError

from mcp_notebook.text.wording import suggest


def read_name(
    line: str, verb: str, noun: str, all_options: Sequence[str]
) -> tuple[str | None, set[str]]:
    """Return the name on a line, None if there is none, and the options.

    Args:
        line: What stands behind the verb.
        verb: The verb, for errors.
        noun: What the name is of, for errors.
        all_options: The options that the verb has.

    Raises:
        UsageError: The line has something else, or too much.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: close the quote in `%mcp {verb} {line}`.") from None
    names = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    for option in options:
        if option not in all_options:
            meant = suggest(option, all_options)
            hint = f"Did you mean `{meant}`?" if meant else f"It has {', '.join(all_options)}."
            raise UsageError(f"`%mcp {verb}` has no option `{option}`. {hint}")
    if len(names) > 1:
        quotes = " Put a name with spaces in quotes." if noun == "file" else ""
        raise UsageError(
            f"`%mcp {verb}` takes one {noun}, not {len(names)}: {', '.join(names)}.{quotes}"
        )
    return (names[0] if names else None), set(options)
