"""Reads the code of tools, and what clients see of them, for what a model will misunderstand.

Face: `lint_tools` (`rules`); for the evals, `PROVIDERS` (`schemas`).

Runs in the process of the command, and calls no tool. `sources` parses the cells: which tools they
declare, and where. Then each module has one kind of rule: `names` and `descriptions` (words that
say too little, or the same as another tool's), `schemas` (what models' APIs refuse), `effects`
(what a function changes, for ``--read-only``) and `client_text` (text from a client that would run,
or name a file). `rules` applies them and adds safe corrections.

The rules prefer silence: a finding that is wrong costs more trust than one that is missing, and the
tests and the answers to examples find other faults. `tests/check/lint` has the planted faults.
"""
