"""Converts what a tool returned, printed and displayed into the result of its call.

Runs in the user's kernel, on the thread of the call. A result holds what the call printed and
displayed, in order, and then its value, which becomes content by the rules of `values`. With an
output schema, the value also becomes structured content. JSON text in the content then has the same
data: null for NaN, a model under its aliases.

Whatever the value's own code raises, the client gets a sentence and the kernel continues.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.content import ContentBlock, Result, Text
from mcp_notebook.errors import InvalidResult, ResourceFailed
from mcp_notebook.kernel.results.blocks import author_blocks
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import fit_pieces
from mcp_notebook.kernel.results.blocks.originals import OriginalSink, discard_original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.blocks.truncation import MAX_REPEATED
from mcp_notebook.kernel.results.custom_types import CustomTypes
from mcp_notebook.kernel.results.files.returned_files import Files
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.results.iterators import (
    MAX_COLLECTED,
    collect_async_items,
    collect_items,
    is_async_generator,
    is_awaitable,
    is_iterator,
    is_result,
)
from mcp_notebook.kernel.results.outputs import RENDERED, Outputs, RenderedDisplay, render_outputs
from mcp_notebook.kernel.results.plots import matplotlib_figures
from mcp_notebook.kernel.results.plots.renderer import ProcessRenderer
from mcp_notebook.kernel.results.resource_contents import MAX_CONTENT, make_contents
from mcp_notebook.kernel.results.self_shown import leave_out_generated_repr
from mcp_notebook.kernel.results.structured import NO_DATA, Structured, make_structured
from mcp_notebook.kernel.results.tracebacks import CodeName, ErrorStyle
from mcp_notebook.kernel.results.value_renderer import (
    MISSING,
    PLAIN_TYPES,
    Format,
    RenderContext,
    ValueRenderer,
)
from mcp_notebook.kernel.results.values import RULES
from mcp_notebook.kernel.results.views.kept_views import KeptViews
from mcp_notebook.kernel.safe.foreign_code import (
    CONVERSION_SECONDS,
    DeadlineExceeded,
    deadline,
    run_guarded,
)
from mcp_notebook.kernel.safe.text import (
    clean_text,
    describe_error,
    describe_slow_value,
    get_type_name,
    is_sendable,
)
from mcp_notebook.kernel.schemas.output.data_limit import convert_plain_data
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema
from mcp_notebook.settings.settings import Settings

NOTHING = "Done: the tool returned nothing."
WHOLE_ERRORS = ErrorStyle()


class Converter:
    """Makes the results of calls; it never changes, so all threads share it.

    Args:
        format: IPython's ``shell.display_formatter.format``.
        settings: The limits of results.
        keep: Keeps the originals of what is shown only in part.
        custom_types: The author's own converters.
        code_name: IPython's ``shell.compile.format_code_name``, to name cells in tracebacks.
        folders: Folders whose files may be shown; None: as the settings say.
        seconds: Time limit for the reprs and display methods of the values in one result.
    """

    def __init__(  # noqa: PLR0913 - each is of another part
        self,
        format: Format,  # noqa: A002 - IPython's own name for it
        settings: Settings,
        *,
        keep: OriginalSink = discard_original,
        custom_types: CustomTypes | None = None,
        code_name: CodeName | None = None,
        folders: SharedFolders | None = None,
        seconds: float = CONVERSION_SECONDS,
    ) -> None:
        self._folders = folders or SharedFolders.from_settings(settings)
        files = Files(self._folders)
        self._context = RenderContext(format, files, custom_types or CustomTypes(), RULES)
        self._seconds = seconds
        self._budget = structs.replace(
            Budget.from_settings(settings, keep), renderer=ProcessRenderer()
        )
        self._max_structured_chars = settings.max_structured_chars
        self._code_name = code_name

    @property
    def keep(self) -> OriginalSink:
        """Keeps the originals of what is shown only in part."""
        return self._budget.keep

    def keep_by(self, sink: OriginalSink) -> None:
        """Replace the sink of originals: no client can read from a copy of the kernel."""
        self._budget = structs.replace(self._budget, keep=sink)

    def format_display(
        self,
        value: Any,
        include: Any = None,
        exclude: Any = None,
        *,
        max_chars: int | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Format a displayed value as ``display_formatter.format`` does for a cell.

        Figures that are too large for memory are drawn smaller. Tables, arrays and content blocks
        become the same content as returned ones, but converters apply to returned values only.

        Args:
            value: The displayed value.
            include: MIME types, as ``display_formatter.format`` takes them.
            exclude: The same.
            max_chars: As for `make_result`.
        """
        if matplotlib_figures.can_draw(value):
            return self._format_figure(value)
        data, metadata = self._context.format(value, include, exclude)
        if not data or include or exclude:
            return data, metadata
        data = dict(leave_out_generated_repr(value, data))
        context = structs.replace(self._context, custom_types=CustomTypes())
        with deadline(self._seconds):
            pieces = ValueRenderer(context, self._limit_budget(max_chars)).render_displayed(value)
        if pieces is None:
            return data, metadata
        return data, {**metadata, RENDERED: RenderedDisplay(pieces)}

    def format_figures(
        self, figures: Iterable[Any], value: Any
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Draw the matplotlib figures that a call left open.

        Args:
            figures: The open figures.
            value: What the call returned; its own figures are left out.

        Yields:
            Representations by MIME type and their metadata, as `format_display` returns them.
        """
        for figure in figures:
            if not matplotlib_figures.has_figure(value, figure):
                yield self._format_figure(figure)

    def find_canvas_figures(self, value: Any) -> list[Any]:
        """Return the figures that a canvas or a box of widgets shows in the notebook."""
        return matplotlib_figures.find_canvas_figures(value)

    def format_drawn_figures(
        self, figures: Iterable[Any]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Format the figures of a call that failed; those without content are left out."""
        return self.format_figures(filter(matplotlib_figures.has_content, figures), None)

    def make_result(  # noqa: PLR0913 - each is of another part
        self,
        value: Any,
        outputs: Outputs,
        output: OutputSchema | None = None,
        *,
        max_chars: int | None = None,
        views: KeptViews | None = None,
        style: ErrorStyle = WHOLE_ERRORS,
    ) -> Result:
        """Make the result of a call that returned.

        Args:
            value: What the function returned.
            outputs: What it printed and displayed.
            output: The tool's output schema, if it has one.
            max_chars: Maximum characters of the result's texts; None: as the settings say.
            views: Keeps what the result's live view shows; None if the client shows none.
            style: How much of an exception the client gets.

        Raises:
            KeyboardInterrupt: The user or the client stopped the call; nothing else is raised.
        """
        budget = self._limit_budget(max_chars)
        is_plain = value is None or type(value) in PLAIN_TYPES
        if is_plain and not self._context.custom_types.conversions:
            result = run_guarded(  # the schema's validators may be the author's code
                lambda: self._make_plain_result(value, outputs, output, budget), lambda _: None
            )
            if result is not None:
                return result
        if views is not None:
            budget = structs.replace(budget, keep=views.keep, note_table=views.note_table)
        with deadline(self._seconds):
            return run_guarded(  # even the class of a value may be unreadable
                lambda: self._make_result(value, outputs, output, budget, views=views, style=style),
                lambda error: _assemble(
                    _explain(value, error), outputs, budget, is_error=output is not None
                ),
            )

    def make_contents(
        self, value: Any, outputs: Outputs, mime_type: str | None, *, max_chars: int | None = None
    ) -> Result:
        """Make the result of reading a resource: whole, not as a client's model would read it.

        Args:
            value: What the function returned.
            outputs: What it displayed; used if it returned nothing.
            mime_type: The declared MIME type; None: what suits the value.
            max_chars: As for `make_result`; by default what the bridge sends at most.

        Raises:
            KeyboardInterrupt: As `make_result`.
            CallError: The value has no such content.
        """
        most = max_chars or MAX_CONTENT

        def render() -> Sequence[ContentBlock]:
            shown = () if value is not None else outputs() if callable(outputs) else outputs
            if value is None and not shown:
                return ()
            result = self.make_result(value, shown, max_chars=most)
            if result.is_error:
                texts = [block.text for block in result.content if isinstance(block, Text)]
                raise ResourceFailed("\n".join(texts))
            return result.content

        with deadline(self._seconds):
            contents = make_contents(value, mime_type, self._folders.read_bytes, render)
        return Result(list(contents))

    def make_failure(
        self,
        error: BaseException,
        outputs: Outputs,
        *,
        max_chars: int | None = None,
        style: ErrorStyle = WHOLE_ERRORS,
    ) -> Result:
        """Make the result of a call that raised.

        Args:
            error: What it raised.
            outputs: What it printed and displayed.
            max_chars: As for `make_result`.
            style: As for `make_result`.

        Raises:
            KeyboardInterrupt: As `make_result`.
        """
        return self._make_failure(error, outputs, self._limit_budget(max_chars), style)

    @staticmethod
    def is_async(value: Any) -> bool:
        """Return whether a returned value must be passed to `await_value`."""
        return type(value) not in PLAIN_TYPES and (is_awaitable(value) or is_async_generator(value))

    async def await_value(self, value: Any, output: OutputSchema | None = None) -> Any:
        """Await a returned value, or the items of an async generator.

        Args:
            value: An awaitable or an async generator; anything else is returned unchanged.
            output: As for `make_result`.
        """
        if is_awaitable(value):
            value = await value
        if not is_async_generator(value):
            return value
        return await collect_async_items(value, self._limit_items(output))

    def _limit_budget(self, max_chars: int | None) -> Budget:
        return self._budget if max_chars is None else structs.replace(self._budget, chars=max_chars)

    def _format_figure(self, figure: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        side = self._budget.picture_side
        return matplotlib_figures.draw_figure(figure, self._context.format, side)

    def _limit_items(self, output: OutputSchema | None) -> int:
        # Structured content is whole or refused, which is decided later.
        return MAX_COLLECTED if output is None else self._max_structured_chars

    def _make_failure(
        self, error: BaseException, outputs: Outputs, budget: Budget, style: ErrorStyle
    ) -> Result:
        def describe() -> Result:
            piece = Piece(style.explain(error, self._code_name))
            return _assemble([piece], outputs, budget, is_error=True)

        with deadline(self._seconds):
            return run_guarded(
                describe,
                lambda failure: _assemble(_explain(error, failure), outputs, budget, is_error=True),
            )

    def _make_plain_result(
        self, value: Any, outputs: Outputs, output: OutputSchema | None, budget: Budget
    ) -> Result | None:
        """Make the result of a call that only returned a short text, a number, a bool or None.

        No code of the value runs, so it needs no time limit and no rules. Returns None if there is
        more to do: the text is long, or the call printed or displayed something.
        """
        structured, shown = NO_DATA, value
        if output is not None:
            structured = make_structured(value, output, self._max_structured_chars)
            shown = value if type(value) is str else structured.data
        is_plain = shown is None or type(shown) in PLAIN_TYPES
        if not is_plain or structured.cuts or (outputs() if callable(outputs) else outputs):
            return None
        if value is None:
            return Result([Text(NOTHING)], structured.data, is_bare=structured.is_bare)
        if type(shown) is not str:
            text = json.dumps(shown)
        elif len(shown) > MAX_REPEATED or not is_sendable(text := clean_text(shown)):
            return None
        if len(text) > min(budget.chars, MAX_REPEATED):
            return None
        return Result([Text(text)], structured.data, is_bare=structured.is_bare)

    def _make_result(  # noqa: PLR0913 - those of `make_result`
        self,
        value: Any,
        outputs: Outputs,
        output: OutputSchema | None,
        budget: Budget,
        *,
        views: KeptViews | None,
        style: ErrorStyle,
    ) -> Result:
        collected = value
        # With structured content, the value is read twice.
        if is_iterator(value) or (output is not None and is_result(value)):
            most = self._limit_items(output)
            collected = run_guarded(lambda: collect_items(value, most), _Failure)
            if isinstance(collected, _Failure):
                return self._make_failure(collected.error, outputs, budget, style)
        limit = self._max_structured_chars
        structured: Any = run_guarded(lambda: make_structured(collected, output, limit), _Failure)
        if isinstance(structured, _Failure):
            error = structured.error
            error = _hide_traceback(error) if style.detail == "full" else error
            return self._make_failure(error, outputs, budget, style)

        def render() -> Result:
            if isinstance(collected, Result):
                return self._complete(collected, structured, outputs, budget)
            is_whole = output is not None and not structured.cuts
            data = structured.data if is_whole else MISSING
            pieces = self._render(collected, budget, data)
            pieces = _note_cuts(pieces, structured, collected, limit)
            result = _assemble(pieces, outputs, budget, structured=structured)
            return result if views is None else views.add_to(result, collected, pieces)

        return run_guarded(
            render,
            lambda error: _assemble(
                _explain(collected, error), outputs, budget, structured=structured
            ),
        )

    def _complete(
        self, result: Result, structured: Structured, outputs: Outputs, budget: Budget
    ) -> Result:
        """Turn an author's `Result` into one that can be sent."""
        limit = self._max_structured_chars
        parts = author_blocks.list_parts(result.content)
        pieces = [piece for part in parts for piece in self._render(part, budget)]
        if not pieces and structured.cuts:
            pieces = [author_blocks.make_json_piece(result.structured, budget.chars)]
        elif not pieces and structured.data is not None:
            pieces = [author_blocks.make_json_piece(structured.data, limit, repeats_data=True)]
        pieces = _note_cuts(pieces, structured, result.structured, limit)
        made = _assemble(
            pieces, outputs, budget, structured=structured, is_error=bool(result.is_error)
        )
        return replace(
            made,
            meta=convert_plain_data(dict(result.meta or {}), limit) | structured.meta,
        )

    def _render(self, value: Any, budget: Budget, data: Any = MISSING) -> list[Piece]:
        return ValueRenderer(self._context, budget, data).render_returned(value)


class _Failure(Struct, frozen=True):
    """An exception of the author's code while a result was made."""

    error: BaseException


def _assemble(
    pieces: Sequence[Piece],
    outputs: Outputs,
    budget: Budget,
    *,
    structured: Structured = NO_DATA,
    is_error: bool = False,
) -> Result:
    """Put the outputs of a call before its value, and fit everything to the budget."""
    # Only now, since rendering the value may have printed or displayed something.
    all_outputs = outputs() if callable(outputs) else outputs
    blocks = fit_pieces([*render_outputs(all_outputs, budget), *pieces], budget)
    is_refused = any(piece.is_refusal for piece in pieces)
    structured = NO_DATA if is_refused else structured
    blocks = blocks or [Text(NOTHING)]
    return Result(
        blocks,
        structured.data,
        is_error or is_refused,
        structured.meta,
        is_bare=structured.is_bare,
    )


def _note_cuts(
    pieces: list[Piece], structured: Structured, value: Any, max_chars: int
) -> list[Piece]:
    """Add a note on what is left out of the structured content, and a link to the whole."""
    if not structured.cuts:
        return pieces
    said = " and ".join(map(str, structured.cuts))
    note = f"[Structured content is limited to {max_chars:,} characters, so only {said} are sent.]"
    original = author_blocks.describe_whole_json(value)
    shown = pieces[0].original if len(pieces) == 1 else None
    if shown is not None and shown.name == original.name:  # the original of a table has no JSON
        return [structs.replace(pieces[0], is_partial=True), Piece(Text(note))]
    return [*pieces, Piece(Text(note), original, is_partial=True)]


def _explain(value: Any, error: BaseException) -> list[Piece]:
    """Return a sentence in place of a value that cannot be rendered."""
    if isinstance(error, DeadlineExceeded):
        return [Piece(Text(describe_slow_value(value, error)))]
    name = get_type_name(value)
    return [Piece(Text(f"A value of type {name} cannot be shown: {describe_error(error)}"))]


def _hide_traceback(error: BaseException) -> InvalidResult:
    """Return an error without a traceback, since the call itself did not fail."""
    if isinstance(error, InvalidResult):
        return error
    return InvalidResult(f"The result cannot be sent as data: {describe_error(error)}.")
