"""One call from its arrival to its answer: queue, run, stop, capture.

The path of a call: `invoker` accepts it, `call_queue` decides when it may begin, one of `runners`
runs its code through `execution` (on the main thread, in a thread, or inside the cell of
``%mcp call``), and `outcome` creates the result. `stopping` stops it, through the gates of
`interrupts`. The `environment` routes its printed text, displays and log messages, including those
of its threads, to its `capture` (through `descriptors` for child processes), and gives it its own
``sys.stdout`` (`streams`), pyplot figures (`pyplot`) and progress bars (`progress_bars`);
`shell_commands` runs ``!command`` without input. `executor_call` waits for an executor's worker.
`call` holds the table of a call's states, `active_call` a call with everything needed to run it.
The `call_log` records all calls, and notifies those that show them.

Face: `invoker.Invoker`, `call.Call`, `call.CallState`, `active_call.ActiveCall`, `call_log.CallLog`
with `LoggedCall`, `kernel_activity.KernelActivity`, which shows Jupyter that a called kernel is in
use, `capture.current_capture`, which tells whether code runs in a call, and
`shell_commands.empty_input`, for headless notebooks. For `fork`, which has another runner:
`runners`, `interrupts` and `outcome`.

Threads: calls arrive and are cancelled on the endpoint's thread. Their code runs on the main
thread, between cells, or in a thread for each call. Time limits are timer threads. Calls share the
queue's lock; the thread that has a result sends it.

Left to others: converting values (`results`), tools and their questions (`tools`), raising an
exception in a thread (`safe.interrupter`), talking to bridges (`link`), and running functions on an
executor's worker (`executors`) or in a copy of the kernel (`fork`).
"""
