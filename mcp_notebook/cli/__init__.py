"""The ``mcp-notebook`` command: each command in a module of its name.

Face: `main` reads the arguments and runs the command; `runner` starts the commands that must start
quickly; `jupyter_bridge` is what the extension of Jupyter Server starts.

Runs in the process of the command, on its main thread. A module of a command is imported when its
command runs, or is asked for its help or to complete a word. To keep these quick, modules that load
pydantic or anyio are imported inside the functions that need them.
"""
