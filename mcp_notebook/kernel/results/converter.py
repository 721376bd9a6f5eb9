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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.results.blocks import author_blocks
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import fit_pieces
from mcp_notebook.kernel.results.blocks.originals import OriginalSink, discard_original
from mcp_notebook.kernel.results.blocks.piece import Piece, describe_text_original
from mcp_notebook.kernel.results.custom_types import CustomTypes
from mcp_notebook.kernel.results.files import Files
from mcp_notebook.kernel.results.iterators import (
    MAX_COLLECTED,
    collect_async_items,
    collect_items,
    is_async_generator,
    is_awaitable,
    is_iterator,
)
from mcp_notebook.kernel.results.outputs import Displayed, Output, Outputs, Printed
from mcp_notebook.kernel.results.plots import matplotlib_figures
from mcp_notebook.kernel.results.plots.renderer import ProcessRenderer
from mcp_notebook.kernel.results.tracebacks import CodeName, describe_exception
from mcp_notebook.kernel.results.values import MISSING, Format, Rules, Values, render_display
from mcp_notebook.kernel.safe.deadline import CONVERSION_SECONDS, DeadlineExceeded, deadline
from mcp_notebook.kernel.safe.text import (
    clean_printed,
    describe_error,
    describe_slow_value,
    get_type_name,
)
from mcp_notebook.kernel.schemas.output_schema import OutputSchema, check_size, convert_plain_data
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.meta_keys import key_problem
from mcp_notebook.settings import Settings

NOTHING = "Done: the tool returned nothing."
_MADE = "mcp_notebook.made"
"""Key of a display's metadata: a `_Made`."""


@dataclass(frozen=True)
class _Made:
    """What a displayed value became, when it was displayed: it may change until the call ends."""

    pieces: Sequence[Piece]


class Converter:
    """Makes results; holds no state, so that calls on several threads can share it.

    Args:
        format: IPython's ``shell.display_formatter.format``.
        settings: How much text and how many rows a result may have.
        keep: Keeps the originals of what is shown only in part.
        custom_types: The author's own converters.
        code_name: IPython's ``shell.compile.format_code_name``, to name cells in tracebacks.
        seconds: What the values' own reprs and display methods may take for one result.
    """

    def __init__(  # noqa: PLR0913 - each is of another part
        self,
        format: Format,  # noqa: A002 - IPython's own name for it
        settings: Settings,
        *,
        keep: OriginalSink = discard_original,
        custom_types: CustomTypes | None = None,
        code_name: CodeName | None = None,
        seconds: float = CONVERSION_SECONDS,
    ) -> None:
        self._rules = Rules(format, Files.of(settings), custom_types or CustomTypes())
        self._seconds = seconds
        self._budget = replace(Budget.from_settings(settings, keep), renderer=ProcessRenderer())
        self._max_structured_chars = settings.max_structured_chars
        self._code_name = code_name

    def format_display(
        self,
        value: Any,
        include: Any = None,
        exclude: Any = None,
        *,
        max_chars: int | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Do for a call what ``display_formatter.format`` does for a cell.

        Figures are not drawn larger than the memory takes. Tables, arrays and content blocks become
        the same content as if they were returned; converters are for what is returned.

        Args:
            value: What is displayed.
            include: MIME types, as ``display_formatter.format`` takes them.
            exclude: The same.
            max_chars: As for `make_result`.
        """
        if matplotlib_figures.can_draw(value):
            return self._format_figure(value)
        data, metadata = self._rules.format(value, include, exclude)
        if not data or include or exclude:
            return data, metadata
        rules = replace(self._rules, custom_types=CustomTypes())
        with deadline(self._seconds):
            made = Values(rules, self._budget_of(max_chars)).shown(value)
        return data, metadata if made is None else {**metadata, _MADE: _Made(made)}

    def format_figures(
        self, figures: Iterable[Any], value: Any
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Draw the matplotlib figures that a call left open.

        Args:
            figures: The open ones.
            value: What the call returned; figures that are shown with it are left out.

        Yields:
            Representations by MIME type and their metadata, as `format_display` returns them.
        """
        for figure in figures:
            if not matplotlib_figures.has_figure(value, figure):
                yield self._format_figure(figure)

    def make_result(
        self,
        value: Any,
        outputs: Outputs,
        output: OutputSchema | None = None,
        *,
        max_chars: int | None = None,
    ) -> Result:
        """Make the result of a call that returned.

        Args:
            value: What the function returned.
            outputs: What it printed and displayed.
            output: What the result is for a program, if the tool says so.
            max_chars: Characters of the result's texts; None: as many as the settings say.

        Raises:
            KeyboardInterrupt: The user or the client stopped the call; nothing else is raised.
        """
        budget = self._budget_of(max_chars)
        with deadline(self._seconds):
            try:
                return self._result(value, outputs, output, budget)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a value may not even tell its class
                made = self._finished([Piece(Text(_no_text(value, error)))], outputs, budget)
                return replace(made, is_error=output is not None)

    def make_failure(
        self, error: BaseException, outputs: Outputs, *, max_chars: int | None = None
    ) -> Result:
        """Make the result of a call that raised.

        Args:
            error: What it raised.
            outputs: What it printed and displayed.
            max_chars: As for `make_result`.

        Raises:
            KeyboardInterrupt: As `make_result`.
        """
        return self._failed(error, outputs, self._budget_of(max_chars))

    @staticmethod
    def is_async(value: Any) -> bool:
        """Tell whether what a function returned is to be passed to `await_value`."""
        return is_awaitable(value) or is_async_generator(value)

    async def await_value(self, value: Any, output: OutputSchema | None = None) -> Any:
        """Wait for what a function returned, and for the items of an async generator.

        Args:
            value: An awaitable or an async generator; anything else is given back as it is.
            output: As for `make_result`.
        """
        if is_awaitable(value):
            value = await value
        if not is_async_generator(value):
            return value
        return await collect_async_items(value, self._most(output))

    def _budget_of(self, max_chars: int | None) -> Budget:
        return self._budget if max_chars is None else replace(self._budget, chars=max_chars)

    def _format_figure(self, figure: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        side = self._budget.picture_side
        return matplotlib_figures.draw_figure(figure, self._rules.format, side)

    def _most(self, output: OutputSchema | None) -> int:
        # For a program whole or not at all; what is too long is refused later.
        return MAX_COLLECTED if output is None else self._max_structured_chars

    def _failed(self, error: BaseException, outputs: Outputs, budget: Budget) -> Result:
        def build() -> Result:
            text = describe_exception(error, self._code_name)
            return replace(self._finished([Piece(Text(text))], outputs, budget), is_error=True)

        with deadline(self._seconds):
            return replace(self._guarded(build, error, outputs, budget), is_error=True)

    def _result(
        self, value: Any, outputs: Outputs, output: OutputSchema | None, budget: Budget
    ) -> Result:
        if is_iterator(value):
            try:
                value = collect_items(value, self._most(output))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a generator is the user's code
                return self._failed(error, outputs, budget)
        try:
            structured = self._structured(value, output)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - serializers are the author's code
            return self._failed(_plain_failure(error), outputs, budget)
        if isinstance(value, Result):
            return self._guarded(
                lambda: self._own(value, structured, outputs, budget),
                value,
                outputs,
                budget,
                structured,
            )
        data = MISSING if output is None else output.unwrap(structured)
        return self._guarded(
            lambda: replace(
                self._finished(self._value_blocks(value, budget, data), outputs, budget),
                structured=structured,
            ),
            value,
            outputs,
            budget,
            structured,
        )

    def _structured(self, value: Any, output: OutputSchema | None) -> Any:
        """Return the structured content of a result, None for none.

        Raises:
            InvalidResult: It does not match its schema, or is too large.
        """
        limit = self._max_structured_chars
        if not isinstance(value, Result):
            return None if output is None else output.convert(value, limit)
        _check_meta(value.meta)
        if output is not None and not value.is_error:
            if value.structured is None and not output.can_be_none:
                raise InvalidResult(
                    "The tool has an output schema, but the `Result` that it returned has no "
                    "`structured`: give it the data, or declare the tool with "
                    "`output_schema=False` (`--no-output-schema`)."
                )
            return output.convert(value.structured, limit)
        made = convert_plain_data(value.structured, limit)
        check_size(made, limit)
        return made

    def _guarded(
        self,
        build: Callable[[], Result],
        value: Any,
        outputs: Outputs,
        budget: Budget,
        structured: Any = None,
    ) -> Result:
        try:
            return build()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the edge that runs the values' own code
            text = _no_text(value, error)
        return replace(self._finished([Piece(Text(text))], outputs, budget), structured=structured)

    def _value_blocks(self, value: Any, budget: Budget, data: Any = MISSING) -> list[Piece]:
        return Values(self._rules, budget, data).top(value)

    def _own(self, value: Result, structured: Any, outputs: Outputs, budget: Budget) -> Result:
        content = author_blocks.list_parts(value.content)
        made = [block for part in content for block in self._value_blocks(part, budget)]
        if not made and structured is not None:
            limit = self._max_structured_chars
            made = [author_blocks.make_json_piece(structured, limit, repeats_data=True)]
        return replace(
            self._finished(made, outputs, budget),
            structured=structured,
            is_error=bool(value.is_error),
            meta=convert_plain_data(dict(value.meta or {}), self._max_structured_chars),
        )

    def _finished(self, made: list[Piece], outputs: Outputs, budget: Budget) -> Result:
        shown = _output_blocks(outputs() if callable(outputs) else outputs, budget)
        kept = fit_pieces([*shown, *made], budget)
        return Result(kept or [Text(NOTHING)])


def _output_blocks(outputs: Iterable[Output], budget: Budget) -> list[Piece]:
    shown: list[Piece] = []
    prints: list[str] = []
    for output in (*outputs, None):
        if isinstance(output, Printed):
            prints.append(output.text)
            continue
        if text := clean_printed("".join(prints)).rstrip():
            shown.append(Piece(Text(text), describe_text_original(text, what="output")))
        prints.clear()
        if output is not None:
            shown += _display_blocks(output, budget)
    return shown


def _display_blocks(output: Displayed, budget: Budget) -> list[Piece]:
    try:
        made = output.metadata.get(_MADE)
        if isinstance(made, _Made):
            return list(made.pieces)
        return render_display(output.data, output.metadata, budget)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the data may be of any type
        return [Piece(Text(f"[a display that cannot be shown: {describe_error(error)}]"))]


def _no_text(value: Any, error: BaseException) -> str:
    if isinstance(error, DeadlineExceeded):
        return describe_slow_value(value, error)
    return f"A value of type {get_type_name(value)} cannot be shown: {describe_error(error)}"


def _plain_failure(error: BaseException) -> BaseException:
    """Return an error that is told without a traceback: the call itself did not fail."""
    if isinstance(error, InvalidResult):
        return error
    return InvalidResult(f"The result cannot be sent as data: {describe_error(error)}.")


def _check_meta(meta: Any) -> None:
    """Refuse what may not be the ``_meta`` of a `Result` that an author made by hand.

    Raises:
        InvalidResult: It is no mapping, or a key is not the author's to use.
    """
    if meta is not None and not isinstance(meta, Mapping):
        raise InvalidResult(
            "The `meta` of the `Result` that the tool returned is a dict, like "
            f"{{'com.example/source': 'sales'}}, not {format_value(meta)}."
        )
    for key in meta or ():
        if problem := key_problem(key):
            raise InvalidResult(
                "The `meta` of the `Result` that the tool returned has the key "
                f"{format_value(key)}, {problem}."
            )
