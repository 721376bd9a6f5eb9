"""The kernel side: everything that runs inside the user's kernel.

It turns functions of the notebook into tools, runs the calls that bridges send, and converts what
the functions return.

Face: `extension`, which builds all of it on ``%load_ext`` and takes it apart again, and is the only
module that knows all rooms; `headless_launcher`, the program of a headless notebook's kernel.

Each room imports only from those after it:

`notebook`
    What the author uses in cells: magics, decorators, `registry`, the card.
`link`
    The thread that bridges connect to: messages in, messages out.
`tasks`
    Calls that outlive the bridge that started them.
`calls`
    One call from its arrival to its answer: queue, run, stop, capture.
`executors`
    Calls that run elsewhere: what an executor gets in place of a tool's function.
`results`
    A Python value becomes content blocks that fit a budget.
`tools`
    What a tool is: declaration, options, metadata, `Context`, elicitation.
`schemas`
    Type hints and JSON Schemas: of arguments, of results, and the messages for a mismatch.
`safe`
    Reading anybody's objects safely: text, JSON, time limits.

Threads: cells, magics, tools that run between cells and all coroutine tools belong to the kernel's
main thread. The endpoint's thread runs a separate event loop, so that bridges get answers while a
cell runs. Tools with ``run="thread"`` have one thread per call, those with ``run="fork"`` one that
waits for a copy of the kernel, and reading a resource runs on worker threads. A tool's code never
runs on the endpoint's thread. All our threads are daemons: none of them keeps the kernel from
exiting.

The kernel side shares its process with the user's code. It therefore never loads ``mcp`` or a web
server, which the bridge process has, keeps no state in modules, and undoes its changes to IPython
when it is unloaded.
"""
