"""A function's signature becomes the JSON Schema that clients read, and a validator of arguments.

Face: `input_schema.read_function_schema`. Runs where tools are declared and where calls run: on any
thread of the kernel.
"""
