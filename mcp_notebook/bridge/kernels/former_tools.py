"""Explanations for tool names that stopped working in the last minutes.

Runs on the bridge's event loop; no I/O. Clients keep old lists, and models remember names; the
error for such a name says what happened and how to get the tool back. `catalog` decides which names
are lost, and why.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import structs

from mcp_notebook.discovery.departures import KEEP
from mcp_notebook.text.missing_tools import MissingTool

MAX_NAMES = 10_000
"""Names that are remembered; beyond it, the oldest are forgotten."""


@dataclass(frozen=True)
class _FormerTool:
    kernel_id: str
    explanation: MissingTool
    until: float
    """When it expires, on the clock of `FormerTools`."""


class FormerTools:
    """Explains the tools that clients could call some minutes ago.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tools: dict[str, _FormerTool] = {}
        """The former tools by the name that clients knew, oldest first."""

    def __len__(self) -> int:
        return len(self._tools)

    def remember(self, name: str, kernel_id: str, explanation: MissingTool) -> None:
        """Remember for some minutes why the tool of this name is missing."""
        self._forget_old()
        self._tools.pop(name, None)
        self._tools[name] = _FormerTool(kernel_id, explanation, self._clock() + KEEP)
        if len(self._tools) > MAX_NAMES:
            del self._tools[next(iter(self._tools))]

    def explain_again(self, kernel_id: str, why: MissingTool) -> None:
        """Replace the explanation of a kernel's tools, now that it is known how the kernel ended.

        Args:
            kernel_id: The id of its record.
            why: The explanation for all its tools; each keeps its name.
        """
        for name, former in self._tools.items():
            if former.kernel_id == kernel_id:
                explanation = structs.replace(
                    why, notebook=former.explanation.notebook, tool=former.explanation.tool
                )
                self._tools[name] = replace(former, explanation=explanation)

    def find(self, name: str) -> MissingTool | None:
        """Return why the tool of this name is missing; None if there was no such tool lately."""
        self._forget_old()
        former = self._tools.get(name)
        return None if former is None else former.explanation

    def list_uris(self) -> list[str]:
        """Return the URIs and templates of missing resources."""
        self._forget_old()
        return [name for name in self._tools if "://" in name]

    def _forget_old(self) -> None:
        now = self._clock()
        while self._tools:
            oldest = next(iter(self._tools))
            if self._tools[oldest].until > now:
                break
            del self._tools[oldest]
