"""Records what the first notebook shows: ``python tests/assistants/record_exchange.py``.

Claude Code, the real program, is asked a question about the tools of ``notebooks/first_look.ipynb``
while the notebook runs ``%mcp record``. The script below is in the place of its model: it chooses
the calls, and makes the answer out of what it was told. The recording,
``notebooks/first_look-calls.ipynb``, says so. Run it after a change of the tools, and after it
``python docs/run_notebooks.py notebooks/first_look.ipynb``.
"""

import csv
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path += [str(HERE.parent), str(ROOT / "docs")]

import nbformat  # noqa: E402
from assistants import ASSISTANTS  # noqa: E402
from conversation import set_up  # noqa: E402
from live import LiveKernel, live_kernel  # noqa: E402
from nbformat import NotebookNode  # noqa: E402
from nbformat.v4 import new_markdown_cell  # noqa: E402
from npm_packages import bring_in  # noqa: E402
from run_notebooks import write_notebook  # noqa: E402
from stand_in import PATIENCE, StandIn, stand_in  # noqa: E402
from talks import end  # noqa: E402

NOTEBOOK = ROOT / "notebooks" / "first_look.ipynb"
RECORDING = NOTEBOOK.with_name("first_look-calls.ipynb")
QUESTION = (
    "How has Iowa's electricity changed since 2001, and when did renewables first pass a third? "
    "Show me a plot."
)
NOTE = """\
# A question to Claude Code

Recorded by `%mcp record` on {day} with {client}, the program as it comes from npm. **Its model \
was a script**, `tests/assistants/record_exchange.py`, which chose these calls and made the answer \
out of what it was told. So the calls and their results are what the program sent and got; which \
tools a model chooses, and what it says, you see with your own assistant."""


def answer_question(model: StandIn, tool: str) -> None:
    """Do what a model might do with the question.

    Args:
        model: Says what the model says, and is told what it would be told.
        tool: What the assistant calls a tool, with a ``{}``.
    """
    names = ("plot_electricity", "electricity_shares", "first_year_above")
    model.call("ToolSearch", query=f"select:{','.join(map(tool.format, names))}")
    assert model.call(tool.format("plot_electricity")).pictures
    shares = model.call(tool.format("electricity_shares"), every=4).text
    above = model.call(tool.format("first_year_above"), percent=33.3, source="Renewables").text
    rows = list(csv.DictReader(shares.partition("\n\n")[2].strip().splitlines()))
    first, last = rows[0], rows[-1]
    year, _, percent = above.strip().partition(": ")
    model.say_end(
        f"Renewables went from {first['Renewables']} % of Iowa's electricity in {first['year']} to "
        f"{last['Renewables']} % in {last['year']}. They first passed a third in {year}, with "
        f"{percent}. Fossil fuels went from {first['Fossil Fuels']} % to {last['Fossil Fuels']} %, "
        f"nuclear energy from {first['Nuclear Energy']} % to {last['Nuclear Energy']} %. The plot "
        "shows all years."
    )


def record(kernel: LiveKernel, home: Path) -> str:
    """Let Claude Code make the calls, and return what it prints at the end."""
    assistant = ASSISTANTS["Claude Code"]
    with stand_in(assistant.api()) as model:
        commands = set_up(assistant, home, model.url, bring_in(HERE))
        kernel.ok(f"%mcp record {RECORDING.name}")
        options = ("--allowedTools", "mcp__notebook,ToolSearch")
        process = commands.start("-p", QUESTION, *options, has_pipes=True)
        try:
            model.watch(process, home / "said")
            process.stdin.close()
            answer_question(model, assistant.tool)
            process.wait(PATIENCE)
            return process.stdout.read().strip()
        finally:
            end(process)
            kernel.ok("%mcp record --stop")


def tell(recording: NotebookNode, answer: str) -> None:
    """Add the question, the answer and how they came about to a recording."""
    calls = [cell for cell in recording.cells if cell.cell_type == "code"]
    about = calls[0].metadata.mcp_notebook
    name, version = about.client.split(" ")
    assert name == "claude-code", name
    note = NOTE.format(day=about.time[:10], client=f"Claude Code {version}")
    recording.cells = [
        new_markdown_cell(note, id="note"),
        new_markdown_cell(f"## The question\n\n{QUESTION}", id="question"),
        *calls,
        new_markdown_cell(f"## The answer\n\n{answer}", id="answer"),
    ]


def main() -> None:
    """Run the notebook, record the calls, and write the recording beside it."""
    with tempfile.TemporaryDirectory(prefix="mcpnb-") as folder:
        home = Path(folder)
        with live_kernel(home, notebook=str(NOTEBOOK)) as kernel:
            for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
                if cell.cell_type == "code" and RECORDING.name not in cell.source:
                    kernel.ok(cell.source)
            answer = record(kernel, home)
        recording = nbformat.read(home / RECORDING.name, as_version=4)
    tell(recording, answer)
    write_notebook(recording, RECORDING)
    sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    main()
