"""Tables, series, arrays and timestamps as parameters: from JSON to a value of the library.

Face: `columns.Columns` and `columns.find_columns`; `data_types`, which gives the data libraries'
types their schemas. `columns` has the tables and series, `arrays` numpy's arrays and numbers. Runs
on any thread of the kernel.
"""
