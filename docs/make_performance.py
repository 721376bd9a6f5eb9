"""Writes the tables and plots of ``docs/operate/performance.md``.

Run by hand after a measurement: ``python docs/make_performance.py``. They are made of what
``tests/benchmarks/compare.py`` and ``grow.py`` beside it have written into ``docs/measurements/``.
With the extra ``demo`` installed (matplotlib).
"""

import hashlib
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path += [str(DOCS.parent / "tests" / "benchmarks"), str(DOCS.parent / "tests")]

from comparison import growth, table  # noqa: E402 - found through the path above
from comparison.figures import Run  # noqa: E402
from comparison.growth import Growth  # noqa: E402

PAGE = DOCS / "operate" / "performance.md"
PLOTS = DOCS / "images" / "performance"
COMPARISON = DOCS / "measurements" / "comparison.json"
GROWTH = DOCS / "measurements" / "growth.json"
BEGIN, END = "<!-- Written by docs/make_performance.py: -->", "<!-- End -->"
ROWS = (
    *("add@1", "add@8", "picture-500kb@1", "table-1mb@1", "argument-200kb@1", "list-500@1"),
    *("start", "first-list", "memory-bridge", "memory-all"),
)
"""What the page shows of all that is measured."""
FEW = 1_000
"""Axes up to this ratio have more numbers than the powers of ten."""
COLORS = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#57606a"]


def comparison() -> str:
    """Return the tables, and what they were measured on, in Markdown."""
    run = Run.read(COMPARISON)
    about = run.about
    versions = "; ".join(
        f"{name}: {', '.join(f'{library} {version}' for library, version in of.items())}"
        for name, of in about["versions"].items()
    )
    verb = "Last measured" if about["pieces"] else "Made"
    origin = (
        f"{verb} on {about['date']}, commit {about['commit']}, on {about['processors']} processors "
        f"with Python {about['python']}, in {about['rounds']} rounds of {about['seconds']} s. "
        f"{'Each row is from one run, but not all rows from the same one. ' * about['pieces']}"
        f"Versions: {versions}."
    )
    all_of_it = (
        f"python tests/benchmarks/compare.py --rounds {about['rounds']} "
        f"--seconds {about['seconds']} --json docs/measurements/comparison.json"
    )
    command = all_of_it if about["pieces"] else about["command"]
    return f"```bash\n{command}\n```\n\n{table.markdown(run, ROWS)}\n\n{origin}"


def plots() -> str:
    """Return the pictures of what grows, in Markdown."""
    return "\n\n".join(
        f"![{alt_text(grown)}](../images/performance/{key}.svg)"
        for key, grown in growth.read(GROWTH).items()
    )


def alt_text(grown: Growth) -> str:
    """Say what a plot shows."""
    ends = []
    for line in grown.lines:
        (_, first), *_, (_, last) = grown.points(line)
        ends.append(f"{line.replace('`', '')}: {first:.3g} to {last:.3g} ms")
    return f"{grown.title}. {'; '.join(ends)}"


def digest(grown: Growth) -> str:
    """Return what says which measurements a plot shows."""
    return hashlib.sha256(repr(sorted(grown.lines.items())).encode()).hexdigest()


def sizes_of(grown: Growth) -> list[int]:
    """Return all sizes of a plot."""
    return sorted({size for line in grown.lines for size, _ in grown.points(line)})


def steps_of(bounds: tuple[float, float]) -> list[float]:
    """Return which numbers of each power of ten stand at an axis with these bounds."""
    return [1] if bounds[1] > FEW * bounds[0] else [1, 2, 5]


def draw(grown: Growth, path: Path) -> None:
    """Draw a plot: medians as points, dashed what linear would be."""
    import matplotlib as mpl  # noqa: PLC0415 - only who draws needs it
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import EngFormatter, LogLocator  # noqa: PLC0415

    style = {"svg.hashsalt": "mcp-notebook", "svg.fonttype": "none", "font.size": 10}
    with mpl.rc_context(style):
        figure = Figure(figsize=(8.6, 4), layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log")
        for color, line in zip(COLORS, grown.lines, strict=False):
            points = grown.points(line)
            sizes, times = zip(*points, strict=True)
            axes.plot(sizes, times, "o-", color=color, markersize=4, label=line.replace("`", ""))
            axes.plot(sizes, growth.linear(points), "--", color=color, linewidth=1, alpha=0.5)
        axes.plot([], [], "--", color="#57606a", linewidth=1, label="linear growth")
        axes.set(title=grown.title, xlabel=grown.sizes, ylabel="duration, ms")
        axes.set_xticks(sizes_of(grown), minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(EngFormatter(sep="") if "byte" in grown.sizes else "{x:,g}")
        axes.yaxis.set_major_locator(LogLocator(subs=steps_of(axes.get_ylim())))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.set_yticks([], minor=True)
        axes.grid(visible=True, color="#d0d7de", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, fontsize=9, loc="outside right upper")
        about = {"Date": None, "Description": digest(grown), "Title": f"By {grown.sizes}"}
        figure.savefig(path, metadata=about)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def fill_in(text: str) -> str:
    """Return the page's text with what is measured in its places."""
    for part in (comparison(), plots()):
        before, _, rest = text.partition(BEGIN + "\n")
        text = f"{before}{MADE}\n\n{part}\n\n{END}{rest.partition(END)[2]}"
    return text.replace(MADE, BEGIN)


MADE = "<!-- made -->"


if __name__ == "__main__":
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    for key, grown in growth.read(GROWTH).items():
        draw(grown, PLOTS / f"{key}.svg")
