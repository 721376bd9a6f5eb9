"""Tables, series, arrays and moments as parameters: from JSON to a value of the library.

Face: `columns.Columns` and `columns.find_columns`; `arrays`, where the data libraries' types get
their schemas. `column_types` says what a column takes, `table_libraries` makes pandas', polars' and
pyarrow's tables. Runs on any thread of the kernel.
"""
