"""A function's signature becomes the JSON Schema that clients read, and a validator of arguments.

Face: `signature_to_schema.read_function_schema`, whose module says in which order the others work;
`callables` reads a callable, `pydantic_validator` makes schema and validator, `markers` are what
authors write into hints, `sent_arguments` deals with what JSON lacks and with JSON in texts. Runs
where tools are declared and where calls run: on any thread of the kernel.
"""
