"""Lets mcp_notebook believe that it runs on another system.

Python imports this module when it starts with this folder on PYTHONPATH; TESTS_PLATFORM has the
value of `sys.platform`. Only modules of mcp_notebook see it: what they import of the standard
library is behind a stand-in that lacks what that system lacks. Other libraries work as on this one,
except for asyncio, whose event loops lack the same. What a system does in another way under the
same name (paths, locks of open files, how processes end) is not tried by this.
"""

import asyncio
import builtins
import enum
import importlib
import os
import signal
import sys
from importlib.machinery import PathFinder

PACKAGE = "mcp_notebook"
AS_IT_IS = "mcp_notebook.kernel.calls.streams"
"""It gives `sys` itself another class, which a stand-in cannot have, and is the same everywhere."""
KEPT = ("SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM")
"""The signals of Windows."""
HIDDEN = {
    "win32": {
        "modules": {"fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty"},
        "os": (
            "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown fchmod fchown fork forkpty "
            "getegid geteuid getgid getpgid getpriority getuid killpg memfd_create mkfifo nice "
            "openpty pidfd_open pipe2 posix_spawn pread pwrite register_at_fork sched_getaffinity "
            "setpgid setsid statvfs sysconf uname wait3 wait4 waitid"
        ).split(),
        "select": "EPOLLIN POLLERR POLLHUP POLLIN POLLOUT epoll poll".split(),
        "signal": [
            *"ITIMER_REAL SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm pause pidfd_send_signal".split(),
            *"pthread_kill pthread_sigmask setitimer siginterrupt sigwait".split(),
            *(number.name for number in signal.Signals if number.name not in KEPT),
        ],
        "socket": "AF_NETLINK AF_UNIX SOCK_CLOEXEC SO_PEERCRED recv_fds send_fds".split(),
    },
    "darwin": {
        "modules": {"spwd"},
        "os": (
            "O_PATH O_TMPFILE memfd_create eventfd pidfd_open pipe2 sched_getaffinity "
            "sched_setaffinity splice copy_file_range posix_fadvise getresuid setresuid"
        ).split(),
        "select": "EPOLLIN epoll".split(),
        "signal": "SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait".split(),
        "socket": "AF_NETLINK SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED".split(),
        "resource": ["prlimit"],
    },
}


class StandIn:
    """A module without some of its names, and with other values of some."""

    def __init__(self, module, hidden, **values):
        vars(self)["_parts"] = module, frozenset(hidden), values

    def __getattr__(self, name):
        module, hidden, values = vars(self)["_parts"]
        if name in values:
            return values[name]
        if name in hidden:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(module, name)

    def __setattr__(self, name, value):
        setattr(vars(self)["_parts"][0], name, value)


class Msvcrt:
    """What is used of Windows' module, made of the locks of this system."""

    LK_NBLCK, LK_UNLCK = 2, 0

    @staticmethod
    def locking(descriptor, mode, _number):
        import fcntl  # noqa: PLC0415

        kind = fcntl.LOCK_UN if mode == Msvcrt.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.flock(descriptor, kind)  # as there, each opened file has its own lock


def list_stand_ins(platform):
    """Return what modules of ours import in place of others, by name; None: it is not there."""
    hidden = dict(HIDDEN[platform])
    replaced = dict.fromkeys(hidden.pop("modules"))
    values = {"sys": {"platform": platform}}
    if platform == "win32":
        numbers = {name: getattr(signal, name).value for name in KEPT}
        values |= {
            "os": {"name": "nt", "supports_dir_fd": set()},
            "signal": {"Signals": enum.IntEnum("Signals", numbers)},
        }
        replaced["msvcrt"] = Msvcrt
    for name in hidden | values:
        module = importlib.import_module(name)
        replaced[name] = StandIn(module, hidden.get(name, ()), **values.get(name, {}))
    return replaced


class Finder(PathFinder):
    """Finds modules of ours, and gives each of them another ``import``."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] != PACKAGE or fullname == AS_IT_IS:
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                vars(module)["__builtins__"] = vars(builtins) | {"__import__": import_as_pretended}
                run(module)

            spec.loader.exec_module = exec_module
        return spec


def import_as_pretended(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
    if level == 0 and name in STAND_INS:
        if STAND_INS[name] is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return STAND_INS[name]
    return builtins.__import__(name, globals, locals, fromlist, level)


def refuse(*_, **__):
    raise NotImplementedError


if platform := os.environ.get("TESTS_PLATFORM"):
    STAND_INS = list_stand_ins(platform)
    sys.meta_path.insert(0, Finder)
    if platform == "win32":
        sys.modules["uvloop"] = None
        loop = asyncio.SelectorEventLoop
        loop.add_signal_handler = loop.create_unix_server = loop.create_unix_connection = refuse
