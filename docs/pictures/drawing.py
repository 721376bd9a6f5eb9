"""What the drawn pictures have in common: boxes, arrows, colors that fit light and dark pages."""

LINE = "#7d8590"
"""A grey that can be seen on white and on black; text is only on panels and boxes."""


def picture(title: str, width: float, height: float, style: str, pieces: list[str]) -> str:
    """Return an SVG document."""
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" \
width="{width:g}" height="{height:g}">
<title>{title}</title>
<style>
text {{ font: 15px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }}
path {{ stroke: {LINE}; stroke-width: 2; fill: none; marker-end: url(#head) }}
.panel {{ fill: #eef1f4; stroke: {LINE} }}
{style.strip()}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="12" markerHeight="12" \
markerUnits="userSpaceOnUse" orient="auto">\
<polygon points="0 0 10 5 0 10" fill="{LINE}"/></marker></defs>
{chr(10).join(pieces)}
</svg>
"""


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return a box with round corners, in the style of its kind."""
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" {place} rx="7"/>'


def arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a straight arrow."""
    return f'<path d="M{start[0]:g} {start[1]:g} {end[0]:g} {end[1]:g}"/>'


def text(words: str, x: float, y: float, kind: str = "") -> str:
    """Return a text in the middle of a place."""
    escaped = words.replace("&", "&amp;").replace("<", "&lt;")
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:g}" y="{y:g}">{escaped}</text>'
