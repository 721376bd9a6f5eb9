"""One call from its arrival to its answer: queue, run, stop, capture.

The path of a call: `invoker` takes it, `call_queue` says when it may begin, one of `runners` runs
its code by `execution` (on the main thread, in a thread, or inside the cell of ``%mcp call``), and
`outcome` makes the result. `stopping` stops it, by the gates of `interrupts`. Around the code
stands its `environment`: prints, displays, log messages and those of the threads that it starts go
to its `capture` (by `patches`; by `descriptors` from the programs that it starts), and it has
pyplot's figures (`pyplot`) and progress bars (`progress_bars`) to itself. `call` holds the table of
a call's states, `active_call` a call with everything it needs. All calls are in the `call_log`,
which also tells whoever shows or records them.

Face: `invoker.Invoker`, `call.Call`, `call.CallState`, `active_call.ActiveCall`, `call_log.CallLog`
with its observers and `LoggedCall`, `result_cache.ResultCache`, `kernel_activity.KernelActivity`,
which shows in Jupyter that a called kernel is in use, and `capture`, whose `current_capture` says
whether code runs in a call. For the room `fork`, whose runner is one more: `runners`, `interrupts`
and `outcome`.

Threads: calls come on the endpoint's thread, and may be cancelled from there. Their code runs on
the main thread, between cells, or in a thread of each call. Time limits are timers, which are
threads. Calls share one lock, the queue's; a result is handed out on whichever thread has it.

Left to others: what a value becomes (`results`), what a tool is and what it may ask (`tools`), how
an exception is raised in a thread (`safe.interrupter`), talking to bridges (`link`), what runs on
an executor's worker (`executors`) or in a copy of the kernel (`fork`).
"""
