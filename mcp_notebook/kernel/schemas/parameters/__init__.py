"""A function's signature becomes the JSON Schema that clients read, and a validator of arguments.

Face: `signature_to_schema.read_function_schema`, whose module describes the order of the steps;
`bound_objects` says which parameters get objects of the notebook; `callables` reads a callable,
`unhinted` finds types where there is no type hint,
`pydantic_validator` makes schema and validator, `markers` are for authors' type hints,
`sent_arguments` refuses NaN and parses JSON in strings. Runs where tools are declared and where
calls run: on any thread of the kernel.
"""
