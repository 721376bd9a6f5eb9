"""Tables, series, arrays and moments as parameters: from JSON to a value of the library.

Face: `table_parameters`, `columns.Columns`, `data_types`. Runs on any thread of the kernel.
"""
