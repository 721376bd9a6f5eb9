"""Type hints and JSON Schemas of arguments and results, and the messages for a mismatch.

Start reading at `parameters/signature_to_schema`: it says how a function's signature becomes the
JSON Schema that clients read and the validator of its calls. Where the author asks for it,
`output/output_schema` does the same for a return annotation, and converts each result to match.
Schemas that an author wrote by hand (`by_hand`) replace either. A type that cannot be offered to
clients is refused when the tool is declared, in a sentence that names the parameter.

Face, for `kernel.tools`, `kernel.results`, `kernel.calls` and `kernel.notebook`:

- `signature_to_schema`: `read_function_schema`, `FunctionSchema`; `author_schema`: the same for a
  schema written by hand
- `output_schema`: `make_output_schema`, `OutputSchema`; `published_schema`: the form that clients
  get; `data_limit`: data without an annotation, and the size limit
- `schema_cache`: `SchemaCache`, schemas of earlier starts
- `markers`: `Header` and `Hidden`, `columns`: `Columns`, `public_url`: `PublicUrl`, and `secrets`:
  `Secret`, for authors; `secrets` also removes the secrets of a call from strings
- `recursion`: the first level of recursive schemas, for clients
- `callables`, `annotations`, `pydantic_validator`: one type hint as schema and validator, for
  questions to the user; `sent_arguments`: numbers in an answer that JSON lacks; `unhinted`: the
  type hints to write, for errors about lists
- `validation_messages`: values and problems in words; `schema_words`: schemas in words, and their
  parts; `docstrings`: descriptions and their length limit

Threads: schemas are made at definition, on the thread that declares the tool; validation and
conversion run wherever the call runs. All objects are immutable, so that calls on several threads
share them.

Left to others: values without an annotation (`kernel.safe.to_json`), the text of a result
(`kernel.results`), and what a tool is (`kernel.tools`).
"""
