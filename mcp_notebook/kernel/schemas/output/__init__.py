"""A return annotation becomes an output schema, and each result is made to match it.

Face: `output_schema.make_output_schema`; `structured_data` for results without an annotation. Runs
on any thread of the kernel.
"""
