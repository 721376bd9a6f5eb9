"""A return annotation becomes an output schema, and each result is made to match it.

Face: `output_schema.make_output_schema`, which also checks each result; `data_limit` for results
without an annotation, and for those that are too large. Runs on any thread of the kernel.
"""
