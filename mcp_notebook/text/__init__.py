"""Text for people: wording, redaction of secrets, and output to a terminal.

Face: `wording` formats counts and sizes, `redaction` masks secrets, `terminal` prints,
`typed_values` reads arguments that people type, and `missing_tools` explains why a tool is missing.
Any process and any thread may use this.
"""
