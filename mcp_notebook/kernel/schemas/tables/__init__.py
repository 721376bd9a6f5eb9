"""Tables, series, arrays and timestamps as parameters: from JSON to a value of the library.

Face: `columns.Columns` and `columns.find_columns`; `arrays`, which gives the data libraries' types
their schemas. `column_types` describes and checks one column, `table_libraries` builds the tables
of pandas, polars and pyarrow. Runs on any thread of the kernel.
"""
