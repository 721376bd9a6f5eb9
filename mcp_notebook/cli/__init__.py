"""The ``mcp-notebook`` command: each command in a module of its name.

Face: `main` reads the arguments and hands over to the command; `bridges` and `runner` start the
commands that must start quickly. Runs in the process of the command, on its main thread; what a
command imports is imported when it runs, so that ``--help`` and shell completion are quick.
"""
