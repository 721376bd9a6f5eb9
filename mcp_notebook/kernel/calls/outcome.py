"""Creates the result of a call from its value or exception, and from its outputs.

Runs in the user's kernel, on the thread of the call. Figures left open in pyplot are displayed, as
at the end of a cell.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, CannotElicit, InvalidArguments
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.capture import Capture
from mcp_notebook.kernel.calls.pyplot import close_figures, open_figures
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.kernel.results.tracebacks import ErrorText
from mcp_notebook.kernel.results.views.kept_views import KeptViews
from mcp_notebook.kernel.safe.foreign_code import DeadlineExceeded
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.secrets import scrub

logger = logging.getLogger(__name__)

_OWN_FAILURE = (
    "mcp-notebook could not run the {} {!r}: {}. The user has to restart the notebook's kernel, "
    "as after each upgrade or removal of a package that it has loaded."
)
_EMPTY_PROMPT = (
    "The prompt {!r} is empty: its function returned nothing. It has to return text, messages, "
    "pictures or tables."
)


class CallConverter:
    """Creates the results of calls.

    Args:
        converter: Converts values and errors, independently of calls.
        has_pages: Returns whether a tool of the notebook has a page of its author's, which may
            call all tools.
    """

    def __init__(self, converter: Converter, has_pages: Callable[[], bool] = lambda: False) -> None:
        self.values = converter
        """Converts values and errors, independently of calls."""
        self._has_pages = has_pages

    def await_value(self, call: ActiveCall, value: Any) -> Coroutine[Any, Any, Any]:
        """Return a coroutine that awaits a function's value."""
        return self.values.await_value(value, call.output_schema, call.capture.yielded)

    def convert_value(self, call: ActiveCall, value: Any) -> Result:
        """Return the result of a call whose function returned.

        Raises:
            BaseException: The call was stopped, or a figure's own code failed.
        """
        capture, figures = call.capture, open_figures()
        if figures:
            unseen = [figure for figure in figures if not capture.has_canvas(figure)]
            for data, metadata in self.values.format_figures(unseen, value):
                capture.show(data, metadata, None)
        try:
            if call.declared is not None and call.kind == "resource":
                return self._convert_resource(call, call.declared.info.mime_type, value)
            is_nothing = value is None or (type(value) in (str, list, tuple) and not value)
            if call.kind == "prompt" and is_nothing and not capture.outputs:
                return error_result(_EMPTY_PROMPT.format(call.tool))
            # The outputs are read last, because an object's display method may print or display.
            result = self.values.make_result(
                value,
                lambda: capture.outputs,
                call.output_schema,
                views=KeptViews(self.values.keep) if _has_view(call) else None,
                has_page=call.kind == "tool" and call.client.shows_views and self._has_pages(),
                style=call.error_style,
                yielded=capture.yielded,
            )
            return scrub_texts(result, capture.secrets) if result.is_error else result
        finally:
            close_figures(figures)

    def _convert_resource(self, call: ActiveCall, mime_type: str | None, value: Any) -> Result:
        try:
            return self.values.make_contents(value, lambda: call.capture.outputs, mime_type)
        except CallError as error:
            reason = str(error)
        except DeadlineExceeded:
            reason = "To write what its function returned took too long: return less."
        return error_result(f"The resource {call.tool!r} cannot be read. {reason}")

    def convert_error(self, call: ActiveCall, error: BaseException) -> Result:
        """Return the result of a call whose code raised; raises nothing itself."""
        figures = open_figures()
        try:
            self._show_drawn_figures(call, figures)
            if isinstance(error, CannotElicit) and error.undeclared:
                call.missing_capability = "elicitation"
            call.refuses_arguments = isinstance(error, InvalidArguments)
            return self._make_failure(call, error, call.capture.yielded)
        except BaseException:  # noqa: BLE001 - an exception's own str or repr may do anything
            style, name = call.error_style, type(error).__name__
            is_masked = style.detail == "masked"
            return error_result(
                style.masked if is_masked else f"The {call.kind} {call.tool!r} failed with {name}."
            )
        finally:
            close_figures(figures)

    def _show_drawn_figures(self, call: ActiveCall, figures: list[Any]) -> None:
        """Display the figures that the call drew before it raised."""
        if call.stop_request is not None:
            return  # they are not needed
        unseen = [figure for figure in figures if not call.capture.has_canvas(figure)]
        for data, metadata in self.values.format_drawn_figures(unseen):
            call.capture.show(data, metadata, None)

    def convert_stop(self, call: ActiveCall, error: CallError) -> Result:
        """Return the result of a stopped call, whose code may still run; raises nothing itself."""
        try:
            return self._make_failure(call, error)
        except Exception:
            logger.exception("the outputs of a stopped call of %r are lost", call.tool)
            return error_result(str(error))

    def format_display(
        self, capture: Capture, *args: Any, **kwargs: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Format a display, as ``display_formatter.format`` does for a cell."""
        figure = self.values.find_canvas_figure(args[0]) if args else None
        if figure is not None:
            capture.add_canvas(figure)
        before = capture.figures
        capture.figures += bool(args) and self.values.is_figure(args[0])
        return self.values.format_display(*args, **kwargs, figures_before=before)

    def _make_failure(
        self, call: ActiveCall, error: BaseException, yielded: Sequence[Any] = ()
    ) -> Result:
        capture = call.capture
        result = self.values.make_failure(
            error, capture.outputs, style=call.error_style, yielded=yielded
        )
        return scrub_texts(result, capture.secrets)


def _has_view(call: ActiveCall) -> bool:
    """Return whether a call's result may have a live view of ours: its author can say no."""
    ui = None if call.declared is None else call.declared.options.ui
    return call.client.shows_views and (ui is None or ui is True)


def scrub_texts(result: Result, secrets: Sequence[str]) -> Result:
    """Remove secrets from a result's texts: the errors of libraries quote their arguments."""
    if not secrets:
        return result
    content = [
        _scrub_block(block, secrets) if isinstance(block, Text) else block
        for block in result.content
    ]
    return replace(result, content=content)


def _scrub_block(block: Text, secrets: Sequence[str]) -> Text:
    text = scrub(block.text, secrets)
    if isinstance(block, ErrorText):
        return replace(block, text=text, details=scrub(block.details, secrets))
    return replace(block, text=text)


def last_result(call: ActiveCall, error: BaseException) -> Result:
    """Return the result of a call that could not be run because code of this package raised.

    Nothing here can fail as that did: no import, and nothing of the tool's.
    """
    logger.error("the %s %r could not be run", call.kind, call.tool, exc_info=error)
    return error_result(_OWN_FAILURE.format(call.kind, call.tool, describe_error(error)))


def error_result(text: str) -> Result:
    """Return a result that says that a call failed, and why."""
    return Result([Text(text)], is_error=True)
