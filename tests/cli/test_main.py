import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import typer
from bridges import INITIALIZE
from forked_command import list_words
from live import kernel_env, live_kernel
from notebook_files import write_notebook
from typer.testing import CliRunner

from mcp_notebook.cli import main
from mcp_notebook.discovery.records import list_live_records

COMMAND = [sys.executable, "-m", "mcp_notebook"]
VERBS = list(typer.main.get_command(main.app).commands)
WIDE = {"COLUMNS": "200", "TERM": "dumb"}


@pytest.fixture(scope="module")
def sales(module_home):
    """A live notebook with a tool."""
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok('%%mcp_tool\ndef add(a: int, b: int = 2) -> int:\n    "Add."\n    return a + b')
        kernel.ok('%%mcp_tool\ndef fail():\n    "Fail."\n    raise ValueError("on purpose")')
        yield kernel


def _run(home, *arguments, **options):
    return subprocess.run(
        list_words(*map(str, arguments)),
        env=kernel_env(home) | WIDE | options.pop("env", {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


@pytest.fixture
def client():
    """The stdin that a silent client gives."""
    reader, writer = os.pipe()
    yield reader
    os.close(reader)
    os.close(writer)


def _notebook(folder, *cells):
    return write_notebook(folder / "busy.ipynb", *cells)


# -- help and usage --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_verb(option):
    answer = CliRunner().invoke(main.app, [option], env=WIDE)
    assert answer.exit_code == 0
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", answer.output)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_an_example_that_the_verb_takes(verb):
    answer = CliRunner().invoke(main.app, [verb, "-h"], env=WIDE)
    assert answer.exit_code == 0
    example = answer.output.partition("Example")[2]
    assert verb in example


def test_without_a_verb_help_is_shown(home):
    done = _run(home)
    assert "Usage" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-verb"],
        ["list", "--no-such-option"],
        ["call"],
        ["call", "add", "a"],
        ["call", "add", "--json", "{"],
        ["call", "add", "--json", "[1]"],
        ["call", "add", "a=1", "--json", "{}"],
        ["serve", "--background", "a.ipynb"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_a_sentence(arguments):
    answer = CliRunner().invoke(main.app, arguments, env=WIDE)
    assert answer.exit_code == 2
    assert "Error" in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "w.ipynb"], "Name the notebook with `--notebook w.ipynb`."),
        (["call", "add", "my w.ipynb"], "Name the notebook with `--notebook 'my w.ipynb'`."),
        (["call", "add", "2015"], "as `NAME=VALUE`, such as `year=2015`: '2015'."),
        (["call", "add", "--arg", "n=2"], "No such option: --arg. Write arguments as"),
        (["call", "add", "n=1", "--n", "-2"], "as `NAME=VALUE`, such as `year=2015`: '--n'."),
        (["call", "--arg", "n=2", "add"], "No such option: --arg. Write arguments as"),
        (["call", "add", ""], "such as `year=2015`: ''."),
        (
            ["call", "add", "--notebok", "w.ipynb"],
            "No such option: --notebok. Did you mean --noteb",
        ),
        (["call", "add", "--yes", "{}"], "Write all arguments as one object: `--json '{}'`."),
        (["call", "add", '{"n": 1}'], "all arguments as one object: `--json '{\"n\": 1}'`."),
        (["call", "add", "--json", "{"], "Invalid value for '--json': '{' is not JSON: "),
        (["call", "add", "--json", "[1]"], "Invalid value for '--json': '[1]' is not a JSON"),
        (["serve", "--watch"], "--watch needs a notebook"),
        (["call"], "Missing argument 'TOOL'"),
        (["lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["a.ipynb"], "To serve this notebook, write `mcp-notebook serve a.ipynb`."),
        (["status"], "No such command 'status'. `mcp-notebook list` shows the tools"),
        (["log"], "No such command 'log'. `mcp-notebook audit` shows who called what."),
        (["help"], "No such command 'help'. Write `mcp-notebook --help`."),
        (["state"], "The commands are demo, stdio, serve, list, call, stop, "),
        (["token", "drop"], "The commands are add, list, remove, rotate."),
    ],
)
def test_wrong_usage_is_answered_with_what_to_write(arguments, sentence):
    answer = CliRunner().invoke(main.app, arguments, env=WIDE)
    assert sentence in answer.stderr


@pytest.mark.parametrize("arguments", [[], *([verb] for verb in VERBS), ["token", "add"]])
def test_help_shows_no_types_of_python_and_no_braces(arguments):
    answer = CliRunner().invoke(main.app, [*arguments, "-h"], env=WIDE)
    help_, _, _ = answer.output.partition("Example")
    assert "--help" in help_
    assert not re.search(r"<\w+|list\[|[{}]", help_)
    # A paragraph fits on one line of this terminal.
    about = help_.partition("Usage: ")[2].partition("─")[0]
    assert not re.search(r"[^\s.:] *\n +\S", about.partition("\n")[2])


def test_each_example_is_a_line_of_its_own():
    answer = CliRunner().invoke(main.app, ["install", "-h"], env=WIDE)
    lines = [line.strip() for line in answer.output.partition("Examples:")[2].strip().splitlines()]
    assert len(lines) > 2
    assert all(line.startswith("mcp-notebook install ") for line in lines)


def test_help_and_completion_load_nothing_heavy():
    script = (
        "import sys, typer.main\n"
        "from mcp_notebook.cli import main\n"
        "group = typer.main.get_command(main.app)\n"
        "print(sorted(name for name in sys.modules if name.startswith('mcp_notebook.cli.')))\n"
        "[command.load() for command in group.commands.values()]\n"
        "heavy = {'mcp', 'uvicorn', 'jupyter_client', 'nbclient', 'IPython', 'pydantic', 'anyio'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = ["mcp_notebook.cli.help", "mcp_notebook.cli.main", "mcp_notebook.cli.runner"]
    assert done.stdout == f"{loaded}\n[]\n"


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_commands_says_what_each_of_them_says(verb):
    help_ = typer.main.get_command(main.app).commands[verb].load().help
    assert help_.partition("\n\n")[0] == main.COMMANDS[verb]


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_a_shell_completes_verbs(home):
    script = Path(sys.executable).with_name("mcp-notebook")
    done = subprocess.run(
        [script],
        env=kernel_env(home)
        | {
            "_MCP_NOTEBOOK_COMPLETE": "complete_bash",
            "COMP_WORDS": "mcp-notebook s",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["stdio", "serve", "stop"]


# -- list and call, as processes -------------------------------------------------------------------


@pytest.mark.smoke
def test_a_live_notebooks_tool_is_listed_and_called(sales):
    assert "add\tsales\ta, b=2\tAdd." in _run(sales.home, "list").stdout
    done = _run(sales.home, "call", "add", "a=40")
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_an_open_notebook_is_named_as_the_list_shows_it(sales):
    done = _run(sales.home, "list", "--notebook", "sales")
    assert "add\tsales" in done.stdout
    assert done.stderr == ""
    done = _run(sales.home, "call", "add", "a=1", "--notebook", "sales.ipynb", cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["call", "ad"], "Unknown tool: 'ad'. Did you mean 'add'? The tools are: add, fail."),
        (
            ["call", "add", "--notebook", "slaes"],
            "and there is no such file. Did you mean 'sales'? Open notebooks: sales.",
        ),
        (["list", "--notebook", "nope.ipynb"], "does not exist"),
        (["list", "--notebook", "x" * 300], "and there is no such file."),
        (["serve", "nope.ipynb"], "does not exist"),
        (["stdio", "nope.ipynb"], "does not exist"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_ends_with_1(sales, client, arguments, text):
    done = _run(sales.home, *arguments, stdin=client)
    assert done.returncode == 1
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert "ExceptionGroup" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_setting_that_cannot_be_used_is_named(home):
    done = _run(home, "list", env={"MCP_NOTEBOOK_START_TIMEOUT": "soon"})
    assert done.returncode == 1
    assert "MCP_NOTEBOOK_START_TIMEOUT='soon'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_is_named(home, client):
    (home / "file").touch()
    done = _run(home, "stdio", stdin=client, env={"MCP_NOTEBOOK_HOME": str(home / "file" / "sub")})
    assert done.returncode == 1
    assert "Set MCP_NOTEBOOK_HOME to a folder that you can write to" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        (["list"], {}),
        (["stdio"], {}),
        (["stdio", "busy.ipynb"], {"MCP_NOTEBOOK_HOME": "own"}),  # Jupyter's libraries look for it
        (["doctor"], {"MCP_NOTEBOOK_HOME": "own"}),
    ],
)
def test_a_user_without_a_home_folder_reads_what_to_set(tmp_path, client, arguments, env):
    """As in a container that is run with a number for its user."""
    _notebook(tmp_path, "1")
    program = """if True:
        import pwd
        def getpwuid(uid):
            raise KeyError(uid)
        pwd.getpwuid = getpwuid
        from mcp_notebook.__main__ import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={"PATH": os.environ["PATH"], **env},
        stdin=client,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("Set HOME to a folder that you can write to.")
    assert "Traceback" not in done.stderr


def test_a_failing_cell_ends_with_1_and_its_traceback(home, client):
    path = _notebook(home, "1 / 0")
    done = _run(home, "stdio", path, stdin=client)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Code cell 1 of 1 of busy.ipynb failed" in done.stderr
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"],
        ["stdio"],
        ["list", "--notebook"],
        ["call", "add", "--notebook"],
    ],
    ids=" ".join,
)
def test_each_command_that_runs_notebooks_can_be_kept_to_trusted_ones(home, client, arguments):
    path = _notebook(home, "open('ran', 'w').close()")
    done = _run(home, *arguments, path, stdin=client, env={"MCP_NOTEBOOK_TRUSTED_ONLY": "1"})
    assert done.returncode == 1
    assert f"{path} is not trusted" in done.stderr
    assert "is not run. Read its code, then trust it with `jupyter trust" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
def test_a_person_who_types_stdio_is_told_who_it_is_for(home):
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*COMMAND, "stdio"],
        env=kernel_env(home),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stderr.readline()
            process.terminate()
            printed = process.communicate(timeout=60)[0]
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)
    assert line.startswith("This command is started by an MCP client")
    assert "Press Ctrl-C to stop it; `mcp-notebook list` shows the tools." in line
    assert printed == ""


@contextmanager
def _open_terminal():
    """Yield the two ends of a new terminal: a person's, and the one that a program gets."""
    ours, theirs = os.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
@pytest.mark.parametrize("stdin", ["terminal", "pipe"])
def test_a_notebook_that_does_not_exist_ends_stdio_although_stdin_stays_open(home, client, stdin):
    with _open_terminal() as (_, terminal), (home / "out").open("w+", encoding="utf-8") as out:
        done = subprocess.run(
            list_words("stdio", str(home / "none.ipynb")),
            env=kernel_env(home),
            stdin=terminal if stdin == "terminal" else client,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        assert out.read() == ""
    assert done.returncode == 1
    assert f"The file {home / 'none.ipynb'} does not exist." in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_stdio_on_a_terminal(home, number, code):
    with (
        _open_terminal() as (person, terminal),
        subprocess.Popen(
            list_words("stdio"),
            env=kernel_env(home),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            os.write(person, json.dumps(INITIALIZE).encode() + b"\n")
            assert json.loads(process.stdout.readline())["id"] == INITIALIZE["id"]
            process.send_signal(number)
            assert process.wait(60) == code
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_a_reader_that_has_disconnected_is_not_an_error(sales):
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        list_words("list"), env=kernel_env(sales.home), stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        said = process.communicate(timeout=60)[1]
    assert said == b""
    assert process.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.slow
@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize(
    ("arguments", "number", "code"),
    [
        (["list", "--notebook"], signal.SIGINT, 130),
        (["call", "add", "--notebook"], signal.SIGTERM, 130),
        (["list", "--notebook"], signal.SIGTERM, 130),
        (["serve", "--port", "0"], signal.SIGINT, 130),
        (["serve", "--port", "0"], signal.SIGTERM, 0),
        (["stdio"], signal.SIGINT, 130),
        (["stdio"], signal.SIGTERM, 0),
        # The terminal was closed.
        (["call", "add", "--notebook"], signal.SIGHUP, 130),
        (["serve", "--port", "0"], signal.SIGHUP, 0),
    ],
)
def test_a_signal_while_cells_run_ends_all_at_once(home, arguments, number, code):
    path = _notebook(
        home,
        "%load_ext mcp_notebook",
        "import pathlib, time",
        "print('x'); time.sleep(600)",
    )
    command = [*COMMAND, *arguments, str(path)]
    if number == signal.SIGTERM:  # as `command &` in a script
        command = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    with subprocess.Popen(
        command,
        env=kernel_env(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            while "cell 3 of 3" not in process.stderr.readline():
                assert process.poll() is None
            (kernel,) = list_live_records(home / ".mcp-notebook" / "kernels")
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in said
    assert not psutil.pid_exists(kernel.pid)
