"""A return annotation becomes an output schema, and each result is converted to match it.

Face: `output_schema.make_output_schema`, which also checks each result; `published_schema` for the
form that clients get; `data_limit` for results without an annotation or over the size limit;
`return_types.describes_view`. Runs on any thread of
the kernel.
"""
