"""A widget of anywidget as a page for its live view: its script with its state, without a kernel.

Runs in the user's kernel, on the thread of the call. What a person does in the page changes the
page only. Widgets that ask their kernel, hold other widgets or load from the web have none.
"""

import base64
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.safe.foreign_code import run_bounded
from mcp_notebook.kernel.safe.libraries import is_instance

_LOADS = re.compile(r"^\s*https?:|\b(?:from|import)\s*\(?\s*[\"']https?://")
_DEFAULT = re.compile(r"\bexport\s+default\b")
_NAMED = re.compile(r"\bexport\s*\{[^}]*?([\w$]+)\s+as\s+default\b[^}]*\}\s*;?")
_PAGE = """<!doctype html><meta charset="utf-8"><style>%(css)s</style><div id="widget"></div>
<script>
addEventListener("unhandledrejection", event => fail(event.reason));
addEventListener("error", event => fail(event.error ?? event.message));
function fail(error) {
  document.body.append(`This widget does not work without its kernel: ${error?.message ?? error}`);
}
const state = JSON.parse(%(state)s, (_, value) => !value?.$base64 ? value :
  new DataView(Uint8Array.from(atob(value.$base64), byte => byte.charCodeAt()).buffer));
const listeners = new Map(), absent = async () => { throw new Error("it asked its kernel") };
window.model = {
  get: name => state[name],
  set(name, value) {
    state[name] = value;
    for (const event of [`change:${name}`, "change"])
      for (const listener of listeners.get(event) ?? []) listener(model, value);
  },
  on(names, listener) {
    for (const name of names.split(" "))
      listeners.set(name, [...listeners.get(name) ?? [], listener]);
  },
  off(name, listener) {
    const others = listener ? (listeners.get(name) ?? []).filter(each => each !== listener) : [];
    listeners.set(name, others);
  },
  save_changes() {}, send() {}, widget_manager: { get_model: absent },
};
window.show = async widget => {
  const given = { model, experimental: { invoke: absent }, signal: new AbortController().signal };
  if (typeof widget === "function") widget = await widget();
  await widget.initialize?.(given);
  await widget.render?.({ ...given, el: document.getElementById("widget") });
};
</script><script type="module">
%(script)s
</script>"""


def describe_widget(value: Any) -> Original | None:
    """Return a widget's page; None if the value is no such widget, or has no page."""
    if not is_instance(value, "anywidget.AnyWidget"):
        return None
    state: Mapping[str, Any] = run_bounded(type(value).get_state, value)
    script = _make_script(str(state.get("_esm", "")))
    traits = {name: trait for name, trait in state.items() if not name.startswith("_")}
    del traits["layout"]  # a widget of its own
    text = json.dumps(traits, default=_encode, allow_nan=False)
    if script is None or "IPY_MODEL_" in text:
        return None
    css = re.sub("</style", r"<\\/style", str(state.get("_css") or ""), flags=re.IGNORECASE)
    page = _PAGE % {"css": css, "state": _escape(json.dumps(text)), "script": _escape(script)}
    html = FileFormat(".html", "text/html", lambda: page)
    return Original("widget", "The widget", (html,), cost=sys.getsizeof(page), kind="widget")


def _make_script(esm: str) -> str | None:
    """Return a module that shows its default export; None if it has none, or loads others."""
    if _LOADS.search(esm):
        return None
    for pattern, shown in ((_NAMED, r";show(\1);"), (_DEFAULT, "const __widget =")):
        if found := [*pattern.finditer(esm)]:
            end = found[-1]
            text = f"{esm[: end.start()]}{end.expand(shown)}{esm[end.end() :]}"
            return text if pattern is _NAMED else f"{text}\n;show(__widget);"
    return None


def _escape(script: str) -> str:
    """Return a script that does not end the element that it stands in."""
    return re.sub(r"<(?=/script|!--|script)", r"\\x3C", script, flags=re.IGNORECASE)


def _encode(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} is not JSON")
