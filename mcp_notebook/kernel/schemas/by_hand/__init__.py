"""Schemas that an author wrote by hand: checked at definition, and enforced for each call.

Face: `author_schema` for arguments, `schema_check` for results, `jsonschema_validator` for both.
Runs on any thread of the kernel.
"""
