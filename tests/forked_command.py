"""Programs of ours and kernels in processes that are forked from one that has imported it all.

`mcp-notebook` spends ten times as long on its imports as on what most tests ask of it, a kernel
three times. So a run of pytest has a server for either, and what tests start in place of
``python -m mcp_notebook`` (`list_words`) hands it its arguments, environment and descriptors. The
server forks: the program runs in a process of its own, with pipes, signals and an end as it always
has them. The process that a test sees passes on the signals and ends as the program does, and when
it is killed, so is the program, a moment later. Where a test is about the process itself (its
memory, its limits, that it is killed), it is started as users start it, as are all outside of
pytest and with ``pytest --unforked``.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import sys

SIZE = 4
"""Bytes of a number on the connection."""
are_forked = False
"""Whether programs are forked; pytest's configuration of ours says so."""
COMMAND, KERNEL, SERVER = "mcp_notebook", "ipykernel_launcher", "jupyter_server"
"""Modules that are run."""
PACKAGES = {
    COMMAND: [
        *("mcp_notebook.cli", "mcp_notebook.bridge"),
        *("anyio._backends._asyncio", "httpcore2", "uvloop"),
    ],
    KERNEL: [
        *("ipykernel.kernelapp", "mcp_notebook.kernel"),
        *("IPython.core.oinspect", "ipykernel.debugger"),
    ],
    SERVER: [
        *("jupyter_server.serverapp", "jupyter_server.extension.serverextension"),
        *("jupyter_server.services.kernels.handlers", "mcp_notebook.jupyter"),
    ],
}
"""What servers import before they run a module, with all that is in packages of ours."""


def list_words(*arguments, module=COMMAND, like=COMMAND):
    """Return the command line that runs a module with these arguments.

    Args:
        *arguments: What follows the module.
        module: Its name.
        like: The module for which a server has imported what this one needs, too.
    """
    if not are_forked:
        return [sys.executable, "-m", module, *arguments]
    return [sys.executable, "-I", "-S", __file__, _start_server(like), module, *arguments]


def find_pid(pid):
    """Return the id of the process that a test means by the one that it has started."""
    if are_forked:
        with open(f"/proc/{pid}/comm") as file:  # noqa: PTH123
            name = file.read().strip()
        if name.isdecimal():
            return int(name)
    return pid


def _send_number(connection, number):
    connection.sendall(number.to_bytes(SIZE, signed=True))


def _receive_number(connection):
    return int.from_bytes(connection.recv(SIZE, socket.MSG_WAITALL), signed=True)


# -- what a test starts ----------------------------------------------------------------------------


def _run_by_server(address, module, *arguments):
    """Have the server run a module, and end as that ends."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [b"!"], [0, 1, 2])
    folder = os.getcwd()  # noqa: PTH109
    request = json.dumps([module, arguments, folder, dict(os.environ)]).encode()
    _send_number(connection, len(request))
    connection.sendall(request)
    pid = _receive_number(connection)
    with open("/proc/self/comm", "w") as file:  # noqa: PTH123
        file.write(str(pid))

    def pass_on(number, _frame):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    os.closerange(0, 3)  # they are the command's
    status = _receive_number(connection)
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no other way
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


# -- the server ------------------------------------------------------------------------------------


@functools.cache
def _start_server(module):
    """Return where a server listens, which is started if no worker of this run has done so."""
    import fcntl  # noqa: PLC0415 - what a test starts does without
    import subprocess  # noqa: PLC0415

    address = f"{os.environ['TESTS_SHARED']}/{module}"
    with open(f"{address}.lock", "w") as lock:  # noqa: PTH123
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(address):  # noqa: PTH110
            _run_server(subprocess, address, module)
    return address


def _run_server(subprocess, address, module):
    command = [sys.executable, __file__, address, module]
    environment = os.environ | {
        # ipykernel reads when it is imported whether a program has started it, not a person.
        "JPY_PARENT_PID": os.environ["TESTS_RUN"],
        # Its debugger warns when it is imported of modules that kernels have otherwise.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def _import_all(names):
    """Import these, and what is in packages of ours, as what is run does when it needs it."""
    import gc  # noqa: PLC0415
    import importlib  # noqa: PLC0415
    import pkgutil  # noqa: PLC0415

    for name in names:
        package = importlib.import_module(name)
        folders = getattr(package, "__path__", ()) if name.startswith("mcp_notebook") else ()
        for _, inner, _ in pkgutil.walk_packages(folders, f"{name}."):
            importlib.import_module(inner)
    gc.collect()
    gc.freeze()


def _serve(address):
    """Fork for each request, until the run ends; return the request in a new process."""
    import selectors  # noqa: PLC0415

    run = os.pidfd_open(int(os.environ["TESTS_RUN"]))
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        if os.fork():
            os._exit(0)  # from now on, it is no child of the process with the tests
        selector.register(listener, selectors.EVENT_READ)
        selector.register(run, selectors.EVENT_READ)
        while True:
            key, _ = selector.select()[0]
            if key.fd == run:
                sys.exit()
            elif key.fileobj is not listener:
                key.data()
            else:
                connection, _ = listener.accept()
                request, descriptors = _receive_request(connection)
                pid = os.fork() if request else None
                if pid == 0:
                    return json.loads(request), descriptors
                for descriptor in descriptors:
                    os.close(descriptor)
                if pid is None:
                    connection.close()
                    continue
                _tell_number(connection, pid)
                _watch(selector, pid, connection)


def _receive_request(connection):
    """Receive what to run, nothing if who asks has ended meanwhile, and the descriptors for it."""
    descriptors = []
    try:
        _, descriptors, *_ = socket.recv_fds(connection, 1, 3)
        size = _receive_number(connection)
        request = connection.recv(size, socket.MSG_WAITALL)
    except OSError:
        return b"", descriptors
    return request if len(request) == size else b"", descriptors


def _tell_number(connection, number):
    """Send a number to who may have ended meanwhile."""
    with contextlib.suppress(OSError):
        _send_number(connection, number)


def _watch(selector, pid, connection):
    """Tell at the other end of a connection how a process ends; kill it if nobody is there."""
    command = os.pidfd_open(pid)

    def tell():
        selector.unregister(command)
        os.close(command)
        _, status = os.waitpid(pid, 0)
        if connection in selector.get_map():
            selector.unregister(connection)
            _tell_number(connection, os.waitstatus_to_exitcode(status))
        connection.close()

    def kill():
        selector.unregister(connection)
        signal.pidfd_send_signal(command, signal.SIGKILL)

    selector.register(command, 1, tell)
    selector.register(connection, 1, kill)


def _leave(statuses):
    """End this process without taking apart what was imported, if it ends with a status."""
    sys.stdout.flush()
    sys.stderr.flush()
    if statuses:
        os._exit(statuses[0])


def _run(statuses, request, descriptors):
    """Run a module in this process, and note the status with which it ends."""
    import multiprocessing.process  # noqa: PLC0415
    import runpy  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 65_536)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    module, arguments, folder, environment = request
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = folder  # where processes that are spawned import from
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.path[0] = folder
    sys.argv[1:] = arguments
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        statuses.append(0)
    except SystemExit as end:
        if not isinstance(end.code, str):
            statuses.append(end.code or 0)
        raise


if __name__ == "__main__":
    if sys.flags.isolated:
        _run_by_server(*sys.argv[1:])
    else:
        statuses = []
        atexit.register(_leave, statuses)  # before all that the imports register, so behind it
        _import_all(PACKAGES[sys.argv[2]])
        _run(statuses, *_serve(sys.argv[1]))
