"""What a call gives back to its client: the one rule of how values become content.

Runs in the user's kernel, on the thread that the call ran on. A result holds what the call printed
and displayed, in order, and then its value. The first line that fits decides:

=====================================  ===========================================================
value                                  content
=====================================  ===========================================================
None                                   nothing (a sentence, if there is nothing else)
`content.Result`, `content.Text`...    as they are, made fit to be sent; around another value,
                                       what that becomes, with what the block says of itself
value of a type that the author        what `kernel.converters` has for it returns, by these rules
converts
str                                    the text
`Path`, and what else leads to a file  the file's content by its type, within the notebook's folder
                                       and the allowed roots (`kernel.files`)
matplotlib figure; axes, artists,      the figure's picture, once, drawn as the notebook draws it
seaborn grids, lists of such           (`kernel.figures`); of an animation the first frame
PIL image; bytes of a picture;         the picture, made smaller if it is too large, its original
`content.Image` of these or an array   kept (`kernel.pictures`, `kernel.arrays`)
DataFrame, Series, Styler; tables of   shape, types and a Markdown or CSV table, bounded; if
polars, pyarrow, modin, cuDF           anything is left out, a link to the whole (`kernel.tables`)
generator, async generator,            the list of its first items
``map``, ``zip``...
plotly, altair, bokeh, graphviz        a picture or what it is made of (`kernel.plots`)
list, tuple, dict with any of these,   each element by these rules, in order
also in a list, tuple, dict in it
object with a Markdown, picture...     that, by the order in `kernel.bundles`; IPython's formatters
representation                         are asked, so what the user registered counts
polars LazyFrame                       its columns; it is not run
2-D or structured numpy array;         a table as above
pandas Index; list of dicts with the
same keys, if that is shorter
other numpy array                      shape, type and values as numpy shortens them
what has a JSON form                   JSON text (`kernel.jsonable`)
anything else                          IPython's text or HTML for it
=====================================  ===========================================================

A tool with an output schema gives its value as structured content too (`kernel.outputs`); where the
content is JSON text, it says the same: null for NaN, a model under its aliases.

Whatever the value's own code raises, the client gets a sentence, and the kernel lives on. Running
the call and collecting its outputs is `kernel.invoke`'s and `kernel.capture`'s business.
"""

import copy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeAlias

from mcp_notebook.content import Audio, ContentBlock, Image, Result, Text
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel import blocks as make
from mcp_notebook.kernel import figures, pictures, plots, tables
from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.bundles import bundle_blocks, plot_blocks
from mcp_notebook.kernel.collecting import (
    MAX_COLLECTED,
    collected,
    gathered,
    is_async_lazy,
    is_awaited,
    is_lazy,
)
from mcp_notebook.kernel.converters import Conversion, Converters
from mcp_notebook.kernel.excerpts import Draft, draft, is_plain, repeating, text_original
from mcp_notebook.kernel.failures import CodeName, failure_text
from mcp_notebook.kernel.files import MAX_FILES, Files, is_path
from mcp_notebook.kernel.formatters import is_registered, registered
from mcp_notebook.kernel.jsonable import bytes_text, is_jsonable, json_text, to_json_value
from mcp_notebook.kernel.originals import Keep, keep_nothing
from mcp_notebook.kernel.outputs import OutputSchema, check_size, plain_data
from mcp_notebook.kernel.patience import PATIENCE, TookTooLong, bounded, patience
from mcp_notebook.kernel.result_meta import check_meta
from mcp_notebook.kernel.shown import Shown
from mcp_notebook.kernel.texts import (
    clean,
    clean_print,
    is_instance,
    is_sendable,
    safe_message,
    safe_repr,
    slow_text,
    type_name,
)
from mcp_notebook.kernel.whole import within_budget
from mcp_notebook.settings import Settings

NOTHING = "Done: the tool returned nothing."
MISSING: Any = object()
"""Stands for no data."""
_MADE = "mcp_notebook.made"
"""Key of a display's metadata: a `_Made`."""

_RICH = ("image/png", "image/jpeg", "text/markdown")
_SCALARS = frozenset({bool, int, float, str, type(None)})
_COLLECTIONS = frozenset({list, tuple, dict})
_MAX_DEPTH = 1
"""Collections within collections whose items are looked at one by one."""
_MAX_LOOKED_AT = 8
"""Items of a collection within another that tell whether it is more than data."""
_RICH_METHODS = (
    *("_repr_mimebundle_", "_repr_png_", "_repr_jpeg_", "_repr_svg_"),
    *("_repr_markdown_", "_repr_html_", "_repr_latex_", "_repr_json_"),
)


@dataclass(frozen=True)
class Printed:
    """What a call wrote to stdout or stderr."""

    text: str


@dataclass(frozen=True)
class Displayed:
    """What a call displayed."""

    data: Mapping[str, Any]
    """MIME types and values; a picture as bytes or as base64 text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Made:
    """What a displayed value became, when it was displayed: it may change until the call ends."""

    blocks: Sequence[ContentBlock]


Output: TypeAlias = Printed | Displayed
Outputs: TypeAlias = Sequence[Output] | Callable[[], Sequence[Output]]
"""The outputs, or how to get them: converting a value may print and display, too."""


class Format(Protocol):
    """IPython's ``shell.display_formatter.format``."""

    def __call__(
        self, obj: Any, include: Any = None, exclude: Any = None, /
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an object's representations by MIME type, and their metadata."""


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
        seconds: float = PATIENCE,
    ) -> None:
        self._rules = _Rules(format, Files.of(settings), converters or Converters())
        self._seconds = seconds
        self._budget = Budget.of(settings, keep)
        self._max_structured_chars = settings.max_structured_chars
        self._code_name = code_name

    def displayed(
        self, value: Any, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Do for a call what ``display_formatter.format`` does for a cell.

        Figures are not drawn larger than the memory takes. Tables, arrays and content blocks become
        the same content as if they were returned; converters are for what is returned.
        """
        if figures.is_drawn(value):
            return figures.display_of(value, self._rules.format, self._budget.picture_side)
        data, metadata = self._rules.format(value, include, exclude)
        if not data or include or exclude:
            return data, metadata
        with patience(self._seconds):
            made = _Values(replace(self._rules, converters=Converters()), self._budget).shown(value)
        return data, metadata if made is None else {**metadata, _MADE: _Made(made)}

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
        with patience(self._seconds):
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

        with patience(self._seconds):
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
        return _Values(self._rules, self._budget, data).top(value)

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
            return _display_blocks(output.data, output.metadata, self._budget)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the data may be of any type
            return [Text(f"[a display that cannot be shown: {safe_message(error)}]")]


@dataclass(frozen=True)
class _Rules:
    """What the conversion of every value goes by."""

    format: Format
    files: Files
    converters: Converters


class _Values:
    """The conversion of one value; `one` is the table above.

    Args:
        rules: What it goes by.
        budget: What the result may take.
        data: The value as a program gets it, if one does: its JSON text says the same.
    """

    def __init__(self, rules: _Rules, budget: Budget, data: Any = MISSING) -> None:
        self._rules = rules
        self._format = rules.format
        self._budget = budget
        self._data = data
        self._value = MISSING
        self._used: tuple[Conversion, ...] = ()
        """The converters whose results are being converted."""
        self._depth = 0
        """In how many collections the value lies that is being converted."""

    def top(self, value: Any) -> list[ContentBlock]:
        self._value = value
        if isinstance(value, str) and not is_sendable(value):
            return [Text("Done: the tool returned an empty text.")]
        return self.one(value)

    def shown(self, value: Any) -> list[ContentBlock] | None:
        """Convert what a call displays; None if its representations by MIME type say as much."""
        try:
            special = (
                isinstance(value, (Result, *make.BLOCK_TYPES))
                or tables.is_table(value)
                or is_instance(value, "numpy.ndarray")
                or is_instance(value, "pandas.Index")
            )
            return self.one(value) if special else None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the value's own code; there is another way
            return None

    def one(self, value: Any) -> list[ContentBlock]:
        try:
            return self._one(value)
        except TookTooLong as error:
            return [Text(slow_text(value, error))]

    def _one(self, value: Any) -> list[ContentBlock]:  # noqa: PLR0911 - the table, in its order
        if value is None:
            return []
        conversion = self._rules.converters.find(value, self._used)
        if conversion is not None:
            return self._converted(value, conversion)
        if isinstance(value, make.BLOCK_TYPES):
            return make.annotated(self._author_block(value), value)
        if isinstance(value, Result):  # within another value
            return [block for part in make.as_list(value.content) for block in self.one(part)]
        if type(value) is str:
            return [draft(value)]
        if is_path(value):
            return self._rules.files.blocks(value, self._budget)
        special = self._picture(value)
        if special is not None:
            return special
        if tables.is_table(value):
            return self._table(value)
        built_in = type(value) in _COLLECTIONS
        if self._is_mixed(value) if built_in else bounded(self._is_mixed, value):
            return self._mixed(value)
        plot = self._plot(value)
        return self._represented(value) if plot is None else plot

    def _plot(self, value: Any) -> list[ContentBlock] | None:
        if not plots.may_be_plot(value):
            return None
        if (data := registered(self._format, value)) is not None:
            return bundle_blocks(data, self._budget)
        plot = plots.plot_of(value)
        if isinstance(plot, str):
            return [Text(plot)]
        return None if plot is None else plot_blocks(plot, self._budget)

    def _converted(self, value: Any, conversion: Conversion) -> list[ContentBlock]:
        used = self._used
        # Not again in what it returns: a converter may return its value, or a value like it.
        self._used = (*used, conversion)
        try:
            made = conversion.function(value)
            if is_lazy(made):
                made = collected(made, MAX_COLLECTED)
            return self.one(made)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the author's code
            return [Text(f"[{conversion.failure(error)}]")]
        finally:
            self._used = used

    def _author_block(self, block: ContentBlock) -> list[ContentBlock]:
        if isinstance(block, Text) and not isinstance(block.text, str):
            return self.one(block.text)
        if isinstance(block, (Image, Audio)) and is_path(block.data):
            return self._rules.files.blocks(block.data, self._budget)
        if isinstance(block, Image) and not isinstance(block.data, (bytes, bytearray, memoryview)):
            made = self._figures(block.data)
            if made is not None:
                return made
        return make.checked(block, self._budget)

    def _picture(self, value: Any) -> list[ContentBlock] | None:
        if is_instance(value, "PIL.Image.Image"):
            return make.picture(lambda: pictures.from_pil(value, self._budget), self._budget)
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
            if not pictures.is_picture(data):
                return [Text(bytes_text(data) or "[no bytes]")]
            return make.encoded_picture(data, self._budget)
        return self._figures(value)

    def _figures(self, value: Any) -> list[ContentBlock] | None:
        found = [value] if figures.is_drawn(value) else figures.figures_of(value)
        if found is None:
            return None
        return [block for one in found for block in self._figure(one)]

    def _figure(self, figure: Any) -> list[ContentBlock]:
        shown = figures.display_of(figure, self._format, self._budget.picture_side)
        return _display_blocks(*shown, self._budget)

    def _table(self, value: Any) -> list[ContentBlock]:
        data = registered(self._format, value)
        if data is None:
            # Not all types: the library's own HTML would be made, too.
            data, _ = self._format(value, _RICH)
        if data:
            return bundle_blocks(data, self._budget)
        return self._repeating(value, tables.table_blocks(value, self._budget))

    def _is_mixed(self, value: Any) -> bool:
        return self._has_rich_items(value, MAX_COLLECTED, self._depth)

    def _has_rich_items(self, value: Any, most: int, depth: int) -> bool:
        if isinstance(value, Mapping):
            items: Iterable[Any] = (value[key] for key in islice(value, most))
        elif isinstance(value, (list, tuple)):
            items = value[:most]
        else:
            return False
        return any(map(self._rich_in(value, depth), items))

    def _rich_in(self, value: Any, depth: int) -> Callable[[Any], bool]:
        """Return what tells whether an item of a collection is more than text."""

        @cache
        def is_listing() -> bool:
            # Many paths are a listing, not files to be read.
            parts = value.values() if isinstance(value, Mapping) else value
            paths = filter(is_path, islice(parts, MAX_COLLECTED))
            return len(list(islice(paths, MAX_FILES + 1))) > MAX_FILES

        def is_rich(item: Any) -> bool:
            if self._rules.converters.find(item, self._used) is not None:
                return True
            if type(item) in _SCALARS:
                return False
            if is_path(item):
                return depth == 0 and not is_listing()
            if type(item) in _COLLECTIONS and depth < _MAX_DEPTH:
                return self._has_rich_items(item, _MAX_LOOKED_AT, depth + 1) or _is_rich(item)
            return _is_rich(item) or is_registered(self._format, item)

        return is_rich

    def _mixed(self, value: Any) -> list[ContentBlock]:
        is_rich = self._rich_in(value, self._depth)
        self._depth += 1
        try:
            return self._items(value, is_rich)
        finally:
            self._depth -= 1

    def _items(self, value: Any, is_rich: Callable[[Any], bool]) -> list[ContentBlock]:
        made: list[ContentBlock] = []
        for key in islice(value, MAX_COLLECTED) if isinstance(value, Mapping) else ():
            rich = is_rich(value[key])
            made.append(
                Text(f"{clean(str(key))}:" + ("" if rich else f" {self._json(value[key])}"))
            )
            made += self.one(value[key]) if rich else []
        for item in () if isinstance(value, Mapping) else value[:MAX_COLLECTED]:
            # Not `one` for all: a list may contain itself.
            plain = [] if item is None else [Text(self._json(item))]
            rich = is_rich(item)
            made += [Text(f"{self._json(item)}:")] if rich and is_path(item) else []
            made += self.one(item) if rich else plain
        if len(value) > MAX_COLLECTED:
            made.append(Text(f"[{len(value) - MAX_COLLECTED:,} more items are left out.]"))
        return _joined(made)

    def _represented(self, value: Any) -> list[ContentBlock]:
        if type(value) in {bool, int, float, list, tuple, dict, set}:
            return self._dicts(value) or [self._json_block(value)]
        if is_instance(value, "numpy.ndarray"):
            return tables.array_blocks(value, self._budget)
        if is_instance(value, "pandas.Index"):
            data, _ = self._format(value, _RICH)
            made = bundle_blocks(data, self._budget) if data else None
            return made or tables.index_blocks(value, self._budget)
        known = is_jsonable(value)
        if known:
            data, _ = bounded(lambda known: self._format(known, _RICH), value)
            return bundle_blocks(data, self._budget) if data else [self._json_block(value)]
        data, _ = bounded(self._format, value)
        if data:
            return bundle_blocks(data, self._budget)
        # Nothing: the object displayed itself (which is among the outputs then), or its repr fails.
        return [] if _displays_itself(value) else [Text(safe_repr(value))]

    def _dicts(self, value: Any) -> list[ContentBlock] | None:
        return None if self._is_data(value) else tables.dicts_blocks(value, self._budget)

    def _repeating(self, value: Any, made: list[ContentBlock]) -> list[ContentBlock]:
        """Have a table's text give way where structured content says the same."""
        if not self._is_data(value):
            return made
        return [repeating(block) if isinstance(block, Text) else block for block in made]

    def _is_data(self, value: Any) -> bool:
        """Tell whether the structured content says the same as a value."""
        return self._data is not MISSING and value is self._value

    def _json_block(self, value: Any) -> Text:
        if not self._is_data(value):
            return make.json_block(value, self._budget.chars)
        if isinstance(self._data, str):
            return replace(draft(self._data), repeats=True)
        # Whole: structured content is bounded itself.
        return make.json_block(self._data, sys.maxsize, repeats=True)

    def _json(self, value: Any) -> str:
        made = to_json_value(value, self._budget.chars)
        return made if isinstance(made, str) else json_text(made)


def _no_text(value: Any, error: BaseException) -> str:
    if isinstance(error, TookTooLong):
        return slow_text(value, error)
    return f"A value of type {type_name(value)} cannot be shown: {safe_message(error)}"


def _plain_failure(error: BaseException) -> BaseException:
    """Return an error that is told without a traceback: the call itself did not fail."""
    if isinstance(error, InvalidResult):
        return error
    return InvalidResult(f"The result cannot be sent as data: {safe_message(error)}.")


def _is_rich(value: Any) -> bool:
    try:
        return _has_rich_form(value)
    except (KeyboardInterrupt, TookTooLong):
        raise
    except BaseException:  # noqa: BLE001 - one item that lies of its class does not hide the others
        return False


def _has_rich_form(value: Any) -> bool:
    return (
        isinstance(value, (Result, *make.BLOCK_TYPES))
        or tables.is_table(value)
        or is_instance(value, "PIL.Image.Image")
        or (isinstance(value, bytes) and pictures.is_picture(value))
        or figures.is_drawn(value)
        or figures.figures_of(value) is not None
        or any(callable(getattr(type(value), name, None)) for name in _RICH_METHODS)
    )


def _display_blocks(
    data: Mapping[str, Any], metadata: Mapping[str, Any], budget: Budget
) -> list[ContentBlock]:
    made = bundle_blocks(data, budget)
    note = metadata.get(figures.NOTE)
    if note and made and isinstance(made[0], Shown):
        made[0] = replace(made[0], notes=(note, *made[0].notes))
    return made


def _displays_itself(value: Any) -> bool:
    return callable(getattr(type(value), "_ipython_display_", None))


def _joined(made: Iterable[ContentBlock]) -> list[ContentBlock]:
    """Join plain neighbouring texts, so that a list of many words is one block."""
    joined: list[ContentBlock] = []
    for block in made:
        last = joined[-1] if joined else None
        if (
            isinstance(last, Text)
            and is_plain(last)
            and isinstance(block, Text)
            and is_plain(block)
        ):
            gap = "\n\n" if "\n" in last.text else "\n"  # ends a Markdown table
            joined[-1] = draft(last.text + gap + block.text)
        else:
            joined.append(block)
    return joined
