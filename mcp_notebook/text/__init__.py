"""Text for people: its words, what is left out of it, and how a terminal shows it.

Face: `wording` writes lists and sizes, `redaction` takes secrets out, `terminal` prints,
`missing_tools` says why a tool is missing. Any
process and any thread may use this.
"""
