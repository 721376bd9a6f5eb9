"""Schemas that an author wrote by hand: checked where the tool is declared, and kept by each call.

Face: `author_schema` for arguments, `json_schema` for results, `json_validator` for both. Runs on
any thread of the kernel.
"""
