"""A function's signature becomes the JSON Schema that clients read, and a validator of arguments.

Face: `input_schema.read_function_schema`; `signatures` reads a callable, `parameters` makes schema
and validator of one type hint, `markers` are what authors write into hints; `argument_binding`,
`json_texts` and `finite_numbers` deal with the values that come. Runs where tools are declared and
where calls run: on any thread of the kernel.
"""
