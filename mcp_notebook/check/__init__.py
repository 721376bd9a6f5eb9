"""``mcp-notebook check``: tests and reviews the tools of a notebook before a model uses them.

Face: `examination` (`Examination`, `examine`, `examine_live`).

Runs in a short-lived process, on its event loop; nothing of it is imported by a kernel or a bridge.
`subject` is what is checked: the tools as the notebook declared them, the source of its code cells,
and the answers to the tools' examples (`calls`). Each check is a function from a `Subject` to
findings: `answers` judges the answers, `direct_uses` and `objects` read the code, and
`descriptions` and `schemas` the list of tools. `examination` runs the notebook and the
checks, and `report` prints the findings. A finding names the tool, the cause and what to write.
"""
