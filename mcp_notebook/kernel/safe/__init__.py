"""Anybody's values and code, handled so that neither can fail, hang or flood a call.

The lowest room of the kernel side. Values of users and libraries run code when they are printed,
compared or converted, and that code may raise anything, take forever, or return gigabytes. The
other rooms reach such values through the functions here, and therefore need no further guards.

Face, for all rooms of `kernel`:

- `text`: clean and cut text; `safe_repr`, `describe_error`, `is_instance` for any object
- `to_json`: any value as JSON, for a model (bounded) or for a program (whole, or refused)
- `libraries`: what the user has imported completely, looked up and never imported
- `stand_ins`: records and objects of libraries as the fields or the text that they mean
- `tabular_data`: tables, series and arrays of the data libraries as lists and dicts
- `deadline`: time limits for the code of values; `foreign_code`: the guard around it
- `moments`: moments and durations with nanoseconds
- `magic_numbers`: the formats of encoded images and sounds
- `libraries`: those that the user has imported completely
- `interrupter`: raising an exception in the code of another thread, and keeping it from ours

Threads: all of it runs on the thread of the call that handles the value, except that `interrupter`
is called from other threads. The only state is the deadline in force, and what each thread may be
interrupted by.

Left to others: which content a value becomes (`kernel.results`), and the conversion by type hints
(`kernel.schemas`).
"""
