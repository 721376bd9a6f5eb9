"""What a call gives back to its client: the one rule of how values become content.

Runs in the user's kernel, on the thread that the call ran on. A result holds what the call printed
and displayed, in order, and then its value. The first line that fits decides (`results.values`):

=====================================  ===========================================================
value                                  content
=====================================  ===========================================================
None                                   nothing (a sentence, if there is nothing else)
`content.Result`, `content.Text`...    as they are, made fit to be sent; around another value,
                                       what that becomes, with what the block says of itself
value of a type that the author        what `custom_types` has for it returns, by these rules
converts
str                                    the text
`Path`, and what else leads to a file  the file's content by its type, within the notebook's folder
                                       and the allowed roots (`files`)
matplotlib figure; axes, artists,      the figure's picture, once, drawn as the notebook draws it
seaborn grids, lists of such           (`plots.matplotlib_figures`); of an animation the first frame
PIL image; bytes of a picture;         the picture, made smaller if it is too large, its original
`content.Image` of these or an array   kept (`blocks.images`, `blocks.arrays`)
DataFrame, Series, Styler; tables of   shape, types and a Markdown or CSV table, bounded; if
polars, pyarrow, modin, cuDF           anything is left out, a link to the whole (`tables`)
generator, async generator,            the list of its first items
``map``, ``zip``...
plotly, altair, bokeh, graphviz        a picture or what it is made of (`plots.detect`)
list, tuple, dict with any of these,   each element by these rules, in order
also in a list, tuple, dict in it
object with a Markdown, picture...     that, by the order in `displays`; IPython's formatters
representation                         are asked, so what the user registered counts
polars LazyFrame                       its columns; it is not run
2-D or structured numpy array;         a table as above
pandas Index; list of dicts with the
same keys, if that is shorter
other numpy array                      shape, type and values as numpy shortens them
what has a JSON form                   JSON text (`safe.to_json`)
anything else                          IPython's text or HTML for it
=====================================  ===========================================================

A tool with an output schema gives its value as structured content too (`schemas.output_schema`);
where the content is JSON text, it says the same: null for NaN, a model under its aliases.

Whatever the value's own code raises, the client gets a sentence, and the kernel lives on. Running
the call and collecting its outputs is `calls.invoker`'s and `calls.capture`'s business.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_notebook.content import ContentBlock, Result, Text
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.results.blocks import author_blocks as make
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import within_budget
from mcp_notebook.kernel.results.blocks.originals import Keep, keep_nothing
from mcp_notebook.kernel.results.blocks.truncation import Draft, text_original
from mcp_notebook.kernel.results.custom_types import Converters
from mcp_notebook.kernel.results.files import Files
from mcp_notebook.kernel.results.iterators import (
    MAX_COLLECTED,
    collected,
    gathered,
    is_async_lazy,
    is_awaited,
    is_lazy,
)
from mcp_notebook.kernel.results.outputs import Displayed, Output, Outputs, Printed
from mcp_notebook.kernel.results.plots import matplotlib_figures as figures
from mcp_notebook.kernel.results.plots.renderer import ProcessRenderer
from mcp_notebook.kernel.results.result_meta import check_meta
from mcp_notebook.kernel.results.tracebacks import CodeName, failure_text
from mcp_notebook.kernel.results.values import MISSING, Format, Rules, Values, display_blocks
from mcp_notebook.kernel.safe.deadline import CONVERSION_SECONDS, DeadlineExceeded, deadline
from mcp_notebook.kernel.safe.text import (
    clean_print,
    safe_message,
    slow_text,
    type_name,
)
from mcp_notebook.kernel.schemas.output_schema import OutputSchema, check_size, plain_data
from mcp_notebook.settings import Settings

NOTHING = "Done: the tool returned nothing."
_MADE = "mcp_notebook.made"
"""Key of a display's metadata: a `_Made`."""


@dataclass(frozen=True)
class _Made:
    """What a displayed value became, when it was displayed: it may change until the call ends."""

    blocks: Sequence[ContentBlock]


class Converter:
    """Makes results; holds no state, so that calls on several threads can share it.

    Args:
        format: IPython's ``shell.display_formatter.format``.
        settings: How much text and how many rows a result may have.
        keep: Keeps the originals of what is shown only in part.
        converters: The author's own.
        code_name: IPython's ``shell.compile.format_code_name``, to name cells in tracebacks.
        seconds: What the values' own reprs and display methods may take for one result.
    """

    def __init__(  # noqa: PLR0913 - each is of another part
        self,
        format: Format,  # noqa: A002 - IPython's own name for it
        settings: Settings,
        *,
        keep: Keep = keep_nothing,
        converters: Converters | None = None,
        code_name: CodeName | None = None,
        seconds: float = CONVERSION_SECONDS,
    ) -> None:
        self._rules = Rules(format, Files.of(settings), converters or Converters())
        self._seconds = seconds
        self._budget = replace(Budget.of(settings, keep), renderer=ProcessRenderer())
        self._max_structured_chars = settings.max_structured_chars
        self._code_name = code_name

    def displayed(
        self, value: Any, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Do for a call what ``display_formatter.format`` does for a cell.

        Figures are not drawn larger than the memory takes. Tables, arrays and content blocks become
        the same content as if they were returned; converters are for what is returned.
        """
        if figures.can_draw(value):
            return figures.draw_figure(value, self._rules.format, self._budget.picture_side)
        data, metadata = self._rules.format(value, include, exclude)
        if not data or include or exclude:
            return data, metadata
        with deadline(self._seconds):
            made = Values(replace(self._rules, converters=Converters()), self._budget).shown(value)
        return data, metadata if made is None else {**metadata, _MADE: _Made(made)}

    @staticmethod
    def shows(value: Any, figure: Any) -> bool:
        """Whether a value's own blocks show a matplotlib figure."""
        return figures.has_figure(value, figure)

    def within(self, chars: int | None) -> "Converter":
        """Return a converter for results of at most so many characters of text; None: as it is."""
        if chars is None:
            return self
        other = copy.copy(self)
        other._budget = replace(self._budget, chars=chars)  # noqa: SLF001 - its own class
        return other

    def result(self, value: Any, outputs: Outputs, output: OutputSchema | None = None) -> Result:
        """Make the result of a call that returned.

        Args:
            value: What the function returned.
            outputs: What it printed and displayed.
            output: What the result is for a program, if the tool says so.

        Raises:
            KeyboardInterrupt: The user or the client stopped the call; nothing else is raised.
        """
        with deadline(self._seconds):
            try:
                return self._result(value, outputs, output)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a value may not even tell its class
                made = self._finished([Text(_no_text(value, error))], outputs)
                return replace(made, is_error=output is not None)

    async def settled(self, value: Any, output: OutputSchema | None = None) -> Any:
        """Wait for what a function returned, and for the items of an async generator.

        Args:
            value: An awaitable or an async generator; anything else is given back as it is.
            output: As for `result`.
        """
        if is_awaited(value):
            value = await value
        return await gathered(value, self._most(output)) if is_async_lazy(value) else value

    def _most(self, output: OutputSchema | None) -> int:
        # For a program whole or not at all; what is too long is refused later.
        return MAX_COLLECTED if output is None else self._max_structured_chars

    def failure(self, error: BaseException, outputs: Outputs) -> Result:
        """Make the result of a call that raised.

        Raises:
            KeyboardInterrupt: As `result`.
        """

        def build() -> Result:
            text = failure_text(error, self._code_name)
            return replace(self._finished([Text(text)], outputs), is_error=True)

        with deadline(self._seconds):
            return replace(self._guarded(build, error, outputs), is_error=True)

    def _result(self, value: Any, outputs: Outputs, output: OutputSchema | None) -> Result:
        if is_lazy(value):
            try:
                value = collected(value, self._most(output))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a generator is the user's code
                return self.failure(error, outputs)
        try:
            structured = self._structured(value, output)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - serializers are the author's code
            return self.failure(_plain_failure(error), outputs)
        if isinstance(value, Result):
            return self._guarded(
                lambda: self._own(value, structured, outputs), value, outputs, structured
            )
        data = MISSING if output is None else output.inner(structured)
        return self._guarded(
            lambda: replace(
                self._finished(self._value_blocks(value, data), outputs), structured=structured
            ),
            value,
            outputs,
            structured,
        )

    def _structured(self, value: Any, output: OutputSchema | None) -> Any:
        """Return the structured content of a result, None for none.

        Raises:
            InvalidResult: It does not match its schema, or is too large.
        """
        limit = self._max_structured_chars
        if not isinstance(value, Result):
            return None if output is None else output.structured(value, limit)
        check_meta(value.meta)
        if output is not None and not value.is_error:
            if value.structured is None and not output.takes_none:
                raise InvalidResult(
                    "The tool has an output schema, but the `Result` that it returned has no "
                    "`structured`: give it the data, or declare the tool with "
                    "`output_schema=False` (`--no-output-schema`)."
                )
            return output.structured(value.structured, limit)
        made = plain_data(value.structured, limit)
        check_size(made, limit)
        return made

    def _guarded(
        self, build: Callable[[], Result], value: Any, outputs: Outputs, structured: Any = None
    ) -> Result:
        try:
            return build()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the edge that runs the values' own code
            text = _no_text(value, error)
        return replace(self._finished([Text(text)], outputs), structured=structured)

    def _value_blocks(self, value: Any, data: Any = MISSING) -> list[ContentBlock]:
        return Values(self._rules, self._budget, data).top(value)

    def _own(self, value: Result, structured: Any, outputs: Outputs) -> Result:
        content = make.as_list(value.content)
        made = [block for part in content for block in self._value_blocks(part)]
        if not made and structured is not None:
            made = [make.json_block(structured, self._max_structured_chars, repeats=True)]
        return replace(
            self._finished(made, outputs),
            structured=structured,
            is_error=bool(value.is_error),
            meta=plain_data(dict(value.meta or {}), self._max_structured_chars),
        )

    def _finished(self, made: list[ContentBlock], outputs: Outputs) -> Result:
        shown = self._output_blocks(outputs() if callable(outputs) else outputs)
        kept = within_budget([*shown, *made], self._budget)
        return Result(kept or [Text(NOTHING)])

    def _output_blocks(self, outputs: Iterable[Output]) -> list[ContentBlock]:
        shown: list[ContentBlock] = []
        prints: list[str] = []
        for output in (*outputs, None):
            if isinstance(output, Printed):
                prints.append(output.text)
                continue
            if text := clean_print("".join(prints)).rstrip():
                shown.append(Draft(text, original=text_original(text, what="output")))
            prints.clear()
            if output is not None:
                shown += self._display_blocks(output)
        return shown

    def _display_blocks(self, output: Displayed) -> list[ContentBlock]:
        try:
            made = output.metadata.get(_MADE)
            if isinstance(made, _Made):
                return list(made.blocks)
            return display_blocks(output.data, output.metadata, self._budget)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the data may be of any type
            return [Text(f"[a display that cannot be shown: {safe_message(error)}]")]


def _no_text(value: Any, error: BaseException) -> str:
    if isinstance(error, DeadlineExceeded):
        return slow_text(value, error)
    return f"A value of type {type_name(value)} cannot be shown: {safe_message(error)}"


def _plain_failure(error: BaseException) -> BaseException:
    """Return an error that is told without a traceback: the call itself did not fail."""
    if isinstance(error, InvalidResult):
        return error
    return InvalidResult(f"The result cannot be sent as data: {safe_message(error)}.")
