"""Converts what a tool returned, printed and displayed into the result of its call.

Runs in the user's kernel, on the thread of the call. A result holds what the call printed and
displayed, in order, and then its value, which becomes content by the rules of `values`. With an
output schema, the value also becomes structured content, which says what else the content shows:
some clients show their model nothing but that.

Whatever the value's own code raises, the client gets a sentence and the kernel continues.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from mimetypes import guess_extension
from typing import Any

from msgspec import Struct, structs

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import InvalidResult, ResourceFailed
from mcp_notebook.kernel.results.blocks import author_blocks
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.fit import fit_pieces
from mcp_notebook.kernel.results.blocks.originals import (
    FileFormat,
    Original,
    OriginalSink,
    discard_original,
)
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.displays import render_undrawn
from mcp_notebook.kernel.results.files.shared_folders import SharedFolders
from mcp_notebook.kernel.results.iterators import (
    MAX_COLLECTED,
    Collected,
    collect_async_items,
    collect_items,
    collect_within,
    is_async_generator,
    is_awaitable,
    is_iterator,
    is_result,
)
from mcp_notebook.kernel.results.outputs import RENDERED, Outputs, RenderedDisplay, render_outputs
from mcp_notebook.kernel.results.plots import matplotlib_figures
from mcp_notebook.kernel.results.resource_contents import MAX_CONTENT, make_contents
from mcp_notebook.kernel.results.self_shown import leave_out_generated_repr
from mcp_notebook.kernel.results.structured import (
    NO_DATA,
    Structured,
    make_page_data,
    make_structured,
)
from mcp_notebook.kernel.results.tracebacks import CodeName, ErrorStyle
from mcp_notebook.kernel.results.value_renderer import (
    PLAIN_TYPES,
    Format,
    RenderContext,
    ValueRenderer,
    note_more,
)
from mcp_notebook.kernel.results.values import RULES
from mcp_notebook.kernel.results.views.kept_views import KeptViews
from mcp_notebook.kernel.safe.foreign_code import (
    CONVERSION_SECONDS,
    DeadlineExceeded,
    ask_classes,
    deadline,
    guard,
)
from mcp_notebook.kernel.safe.text import (
    describe_error,
    describe_slow_value,
    get_type_name,
)
from mcp_notebook.kernel.schemas.output.data_limit import convert_plain_data
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema
from mcp_notebook.kernel.schemas.output.published_schema import ABOUT
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.wording import count
from mcp_notebook.wire.resource_uris import describe_links

NOTHING = "Done: the tool returned nothing."
WHOLE_ERRORS = ErrorStyle()
_MAX_STRUCTURED_CHARS = 100_000
"""Characters of JSON in the data of one result for a page of the author's."""
MAX_ABOUT = 5_000
"""Characters in the structured content on what else a result shows."""


class Converter:
    """Makes the results of calls; it never changes, so all threads share it.

    Args:
        format: IPython's ``shell.display_formatter.format``.
        settings: The limits of results.
        keep: Keeps the originals of what is shown only in part.
        budget: The limits of one result; None: as the settings say.
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
        budget: Budget | None = None,
        code_name: CodeName | None = None,
        folders: SharedFolders | None = None,
        seconds: float = CONVERSION_SECONDS,
    ) -> None:
        self._folders = folders or SharedFolders.from_settings(settings)
        self._context = RenderContext(format, self._folders, RULES)
        self._seconds = seconds
        budget = budget or Budget(chars=settings.max_result_chars)
        self._budget = structs.replace(budget, keep=keep)
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
        figures_before: int = 0,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Format a displayed value as ``display_formatter.format`` does for a cell.

        Figures that are too large for memory are drawn smaller. One for which there may be no room
        in the result is drawn when the result is made, as it is now. Tables, arrays and content
        blocks become the same content as returned ones.

        Args:
            value: The displayed value.
            include: MIME types, as ``display_formatter.format`` takes them.
            exclude: The same.
            figures_before: Figures that the call has displayed before.
        """
        if matplotlib_figures.can_draw(value):
            late = figures_before >= self._budget.pictures - 1
            restore = matplotlib_figures.take_snapshot(value) if late else None
            if restore is not None:
                return self._format_undrawn(value, restore)
            side = self._budget.picture_side
            return matplotlib_figures.draw_figure(value, self._context.format, side)
        data, metadata = self._context.format(value, include, exclude)
        if not data or include or exclude:
            return data, metadata
        data = dict(leave_out_generated_repr(value, data))
        with deadline(self._seconds):
            pieces = ValueRenderer(self._context, self._budget).render_displayed(value)
        if pieces is None:
            return data, metadata
        return data, {**metadata, RENDERED: RenderedDisplay(pieces)}

    def format_figures(
        self, figures: Iterable[Any], value: Any
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Format the matplotlib figures that a call left open; the result draws those it sends.

        Args:
            figures: The open figures.
            value: What the call returned; its own figures are left out.

        Yields:
            Representations by MIME type and their metadata, as `format_display` returns them.
        """
        with deadline(self._seconds):
            problem = guard(lambda: ask_classes(value), recover=lambda error: error)
        for figure in figures:
            if problem or not matplotlib_figures.has_figure(value, figure):
                yield self._format_undrawn(figure)

    @staticmethod
    def is_figure(value: Any) -> bool:
        """Return whether a value is a matplotlib figure, or what stands for one."""
        return matplotlib_figures.can_draw(value)

    @staticmethod
    def find_canvas_figure(value: Any) -> Any:
        """Return the figure whose canvas a value is; None for other values."""
        return value.figure if matplotlib_figures.is_canvas(value) else None

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
        has_page: bool = False,
        style: ErrorStyle = WHOLE_ERRORS,
        yielded: list[Any] | None = None,
    ) -> Result:
        """Make the result of a call that returned.

        Args:
            value: What the function returned.
            outputs: What it printed and displayed.
            output: The tool's output schema, if it has one.
            max_chars: Maximum characters of the result's texts; None: as the settings say.
            views: Keeps what the result's live view shows; None if the client shows none.
            has_page: Whether a page of the author's may read the data.
            style: How much of an exception the client gets.
            yielded: An empty list for the items of a generator, which may fail later.

        Raises:
            KeyboardInterrupt: The user or the client stopped the call; nothing else is raised.
        """
        budget = self._limit_budget(max_chars)
        if views is not None:
            budget = structs.replace(budget, keep=views.keep, note_table=views.note_table)
        items = [] if yielded is None else yielded

        def make() -> Result:
            taken: Any = Collected(value)
            if type(value) not in PLAIN_TYPES:
                ask_classes(value)
                collect = partial(self._collect, value, output, budget, items, has_page=has_page)
                taken = guard(collect, recover=_Failure)
            if isinstance(taken, _Failure):
                return self.make_failure(
                    taken.error, outputs, style=style, yielded=items, budget=budget
                )
            result = self._convert(taken, outputs, output, budget, views=views, style=style)
            if not has_page or result.is_error:
                return result
            data = make_page_data(taken.items, _MAX_STRUCTURED_CHARS)
            return replace(result, meta={**result.meta, **data})

        with deadline(self._seconds):
            return guard(  # even the class of a value may be unreadable
                make,
                recover=lambda error: _assemble(
                    _explain(value, error), outputs, budget, is_error=output is not None
                ),
            )

    def make_contents(self, value: Any, outputs: Outputs, mime_type: str | None) -> Result:
        """Make the result of reading a resource: whole, not as a client's model would read it.

        Args:
            value: What the function returned.
            outputs: What it displayed; used if it returned nothing.
            mime_type: The declared MIME type; None: what suits the value.

        Raises:
            KeyboardInterrupt: As `make_result`.
            CallError: The value has no such content.
        """
        value = value.items if type(value) is Collected else value

        def render() -> Sequence[ContentBlock]:
            shown = () if value is not None else outputs() if callable(outputs) else outputs
            if value is None and not shown:
                return ()
            result = self.make_result(value, shown, max_chars=MAX_CONTENT)
            if result.is_error:
                texts = [block.text for block in result.content if isinstance(block, Text)]
                raise ResourceFailed("\n".join(texts))
            return result.content

        with deadline(self._seconds):
            ask_classes(value)
            contents = make_contents(value, mime_type, self._folders.read_bytes, render)
        return Result(list(contents))

    def make_failure(
        self,
        error: BaseException,
        outputs: Outputs,
        *,
        style: ErrorStyle = WHOLE_ERRORS,
        yielded: Sequence[Any] = (),
        budget: Budget | None = None,
    ) -> Result:
        """Make the result of a call that raised.

        Args:
            error: What it raised.
            outputs: What it printed and displayed.
            style: As for `make_result`.
            yielded: What it had yielded before, which is shown too.
            budget: The limits of the result; None: those of all results.

        Raises:
            KeyboardInterrupt: As `make_result`.
        """
        budget = budget or self._budget

        def describe() -> Result:
            pieces = self._render_yielded(yielded, budget)
            pieces.append(Piece(style.explain(error, self._code_name)))
            return _assemble(pieces, outputs, budget, is_error=True)

        with deadline(self._seconds):
            return guard(
                describe,
                recover=lambda failure: _assemble(
                    _explain(error, failure), outputs, budget, is_error=True
                ),
            )

    @staticmethod
    def is_async(value: Any) -> bool:
        """Return whether a returned value must be passed to `await_value`."""
        return type(value) not in PLAIN_TYPES and (is_awaitable(value) or is_async_generator(value))

    async def await_value(
        self,
        value: Any,
        output: OutputSchema | None = None,
        yielded: list[Any] | None = None,
    ) -> Any:
        """Await a returned value, or the items of an async generator.

        Args:
            value: An awaitable or an async generator; anything else is returned unchanged.
            output: As for `make_result`.
            yielded: The same.
        """
        if is_awaitable(value):
            value = await value
        if not is_async_generator(value):
            return value
        most = self._limit_items(output, self._budget)
        return await collect_async_items(value, most, yielded)

    def _limit_budget(self, max_chars: int | None) -> Budget:
        return self._budget if max_chars is None else structs.replace(self._budget, chars=max_chars)

    @staticmethod
    def _limit_items(output: OutputSchema | None, budget: Budget) -> int:
        # How much of structured content is sent is decided later.
        return MAX_COLLECTED if output is None else budget.chars

    def _format_undrawn(
        self, figure: Any, restore: Callable[[], Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        piece = render_undrawn(figure, self._context.format, self._budget, restore)
        return {"text/plain": piece.text}, {RENDERED: RenderedDisplay((piece,))}

    def _render_yielded(self, items: Sequence[Any], budget: Budget) -> list[Piece]:
        """Render what a generator yielded before it failed."""
        if not items:
            return []
        heading = Piece(Text(f"[{count(len(items), 'item')} came before the error:]"))
        return [heading, *guard(lambda: self._render([*items], budget), recover=lambda _: [])]

    def _convert(  # noqa: PLR0913 - those of `make_result`
        self,
        taken: Collected,
        outputs: Outputs,
        output: OutputSchema | None,
        budget: Budget,
        *,
        views: KeptViews | None,
        style: ErrorStyle,
    ) -> Result:
        value = taken.items
        structured: Any = guard(
            lambda: make_structured(value, output, budget.chars), recover=_Failure
        )
        if isinstance(structured, _Failure):
            error = structured.error
            error = _hide_traceback(error) if style.detail == "full" else error
            return self.make_failure(error, outputs, style=style, budget=budget)

        def render() -> Result:
            if isinstance(value, Result):
                return self._complete(value, structured, outputs, budget)
            pieces = self._render(value, budget)
            if structured.cuts:
                pieces = told = _note_cuts(pieces, structured, value, budget.chars)
            else:
                told = [piece for piece in pieces if not isinstance(piece.block, Text)]
            more = note_more(taken)
            pieces, told = [*pieces, *more], [*told, *more]
            result = _assemble(pieces, outputs, budget, structured=structured, told=told)
            return result if views is None else views.add_to(result, value, pieces)

        return guard(
            render,
            recover=lambda error: _assemble(
                _explain(value, error), outputs, budget, structured=structured
            ),
        )

    def _collect(
        self,
        value: Any,
        output: OutputSchema | None,
        budget: Budget,
        yielded: list[Any],
        *,
        has_page: bool,
    ) -> Collected:
        """Read a value that can be read only once; return any other as it is."""
        if type(value) is Collected:
            return value
        most = self._limit_items(output, budget)
        # Data is read in addition to the content.
        if is_iterator(value) or ((output is not None or has_page) and is_result(value)):
            return collect_items(value, most, yielded)
        return Collected(collect_within(value, most))

    def _complete(
        self, result: Result, structured: Structured, outputs: Outputs, budget: Budget
    ) -> Result:
        """Turn an author's `Result` into one that can be sent."""
        parts = author_blocks.list_parts(result.content)
        pieces = told = [piece for part in parts for piece in self._render(part, budget)]
        if not pieces and structured.data is not None:
            pieces = self._render(result.structured, budget)
        if structured.cuts:
            pieces = told = _note_cuts(pieces, structured, result.structured, budget.chars)
        is_error = bool(result.is_error)
        made = _assemble(
            pieces, outputs, budget, structured=structured, told=told, is_error=is_error
        )
        meta = convert_plain_data(dict(result.meta or {}), _MAX_STRUCTURED_CHARS)
        return replace(made, meta=meta)

    def _render(self, value: Any, budget: Budget) -> list[Piece]:
        return ValueRenderer(self._context, budget).render_returned(value)


class _Failure(Struct, frozen=True):
    """An exception of the author's code while a result was made."""

    error: BaseException


def _assemble(  # noqa: PLR0913 - each is of another part
    pieces: Sequence[Piece],
    outputs: Outputs,
    budget: Budget,
    *,
    structured: Structured = NO_DATA,
    told: Sequence[Piece] = (),
    is_error: bool = False,
) -> Result:
    """Put the outputs of a call before its value, and fit everything to the budget.

    Args:
        pieces: What the value became.
        outputs: What the call printed and displayed.
        budget: The limits of the result.
        structured: The value as data.
        told: The pieces that show what the data does not have, the most important first.
        is_error: Whether the call failed.
    """
    # Only now, since rendering the value may have printed or displayed something.
    shown = render_outputs(outputs() if callable(outputs) else outputs, budget)
    is_refused = any(piece.is_refusal for piece in pieces)
    data = None if is_refused else structured.data
    if data is None or not (shown or told):
        blocks = fit_pieces([*shown, *pieces], budget)
    else:
        if budget.keep is not discard_original:
            budget = structs.replace(budget, keep=cache(budget.keep))  # each once
        blocks = fit_pieces([*shown, *pieces], budget)
        about, links = _describe([*shown, *told], budget)
        data = {ABOUT: about, **data}
        # Guests may read what their results link to.
        blocks += [link for link in links if link not in blocks]
    return Result(blocks or [Text(NOTHING)], data, is_error or is_refused)


def _describe(pieces: Sequence[Piece], budget: Budget) -> tuple[str, list[ResourceLink]]:
    """Return what pieces show as a text for structured content, and the links in it."""
    most = min(MAX_ABOUT, budget.chars)
    blocks: list[ContentBlock] = []
    for block in fit_pieces(pieces, structs.replace(budget, chars=most)):
        blocks += [block] if isinstance(block, Text | ResourceLink) else _keep(block, budget)
    texts = []
    for address, group in groupby(blocks, _find_address):
        if address:
            texts.append(describe_links([link for link in group if isinstance(link, ResourceLink)]))
        else:
            texts += [block.text for block in group if isinstance(block, Text)]
    return "\n\n".join(texts), [block for block in blocks if isinstance(block, ResourceLink)]


def _find_address(block: ContentBlock) -> str:
    """Return what the links to all forms of one original have in common; "" for other blocks."""
    return block.uri.rpartition("/")[0] if isinstance(block, ResourceLink) else ""


def _keep(block: Image | Audio | Resource, budget: Budget) -> Sequence[ContentBlock]:
    """Return links to a picture, a sound or a document."""
    name = {Image: "picture", Audio: "sound"}.get(type(block), "document")
    extension = guess_extension(block.mime_type) or ""
    size = len(block.data) if isinstance(block.data, bytes) else None
    form = FileFormat(extension, block.mime_type, lambda: block.data, size)
    links = budget.keep(Original(name, f"A {name} of the result", (form,), len(block.data)))
    return links or [Text(f"[A {name}, {block.mime_type}, not kept]")]


def _note_cuts(
    pieces: list[Piece], structured: Structured, value: Any, max_chars: int
) -> list[Piece]:
    """Begin with a note on what is left out of the structured content, and a link to the whole."""
    said = " and ".join(map(str, structured.cuts))
    note = f"[Structured content is limited to {max_chars:,} characters, so only {said} are sent.]"
    original = author_blocks.describe_whole_json(value)
    shown = pieces[0].original if len(pieces) == 1 else None
    if shown is not None and shown.name == original.name:  # the original of a table has no JSON
        return [Piece(Text(note)), structs.replace(pieces[0], is_partial=True)]
    return [Piece(Text(note), original, is_partial=True), *pieces]


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
