"""Type hints and JSON Schemas: of arguments, of results, and the messages for a mismatch.

Everything about types is here. A function's signature becomes the JSON Schema that clients read and
the validator that its calls pass; a return annotation becomes an output schema, and each result is
made to match it. Schemas that an author wrote by hand take the same place. What cannot be offered
to clients is refused when the tool is declared, in a sentence that names the parameter.

Face, for `kernel.tools`, `kernel.results`, `kernel.calls` and `kernel.notebook`:

- `signature_to_schema`: `read_function_schema`, `FunctionSchema`; `author_schema`: the same for a
  schema written by hand
- `output_schema`: `make_output_schema`, `OutputSchema`; `data_limit`: data without an annotation,
  and how much is sent
- `schema_cache`: `SchemaCache`, schemas of earlier starts
- `markers`: `Header` and `Hidden`, `columns`: `Columns`, and `secrets`: `Secret`, for authors;
  `secrets` also removes the secrets of a call from texts
- `recursion`: what clients get of a schema that contains itself
- `callables`, `annotations`, `pydantic_validator`: one type hint as schema and validator, for
  questions to the user; `sent_arguments`: numbers in an answer that JSON lacks
- `validation_messages`: values and problems in words; `schema_words`: schemas in words, and their
  parts; `docstrings`: how long descriptions may be

Threads: schemas are made at definition, on the thread that declares the tool; validation and
conversion run wherever the call runs. Nothing here changes after it is made, so that calls on
several threads share it.

Left to others: values that no annotation describes (`kernel.safe.to_json`), the text of a result
(`kernel.results`), and what a tool is (`kernel.tools`).
"""
