"""Safe access to foreign values: they cannot make a call fail, hang or overflow.

The lowest room of the kernel side. Values of users and libraries run code when they are printed,
compared or converted, and that code may raise anything, take forever, or return gigabytes. The
other rooms read such values through the functions here, and need no guards of their own.

Face, for all rooms of `kernel`:

- `foreign_code`: runs the code of values within a guard and a time limit
- `text`: cleans and cuts text; `safe_repr` and `describe_error` for any object
- `to_json`: any value as JSON: cut to size for a model, whole or refused for a program
- `libraries`: `is_instance` and `find_imported`, which never import a library
- `sequences`: lists, sets, views and mappings of any class, read alike
- `stand_ins`: records and library objects as their fields or as text
- `tabular_data`: tables, series and arrays of data libraries as lists and dicts
- `moments`: times and durations with nanoseconds
- `magic_numbers`: the formats of encoded images and audio
- `interrupter`: raises an exception in the foreign code that another thread runs
- `replacement`: replaces an attribute of an object of others, and puts it back

Threads: everything runs on the thread of the call, except `interrupter`, which is called from other
threads. The only state is the current deadline, and the interrupters of each thread.

Left to other rooms: which content a value becomes (`kernel.results`), and conversion by type hints
(`kernel.schemas`).
"""
