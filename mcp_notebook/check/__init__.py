"""``mcp-notebook check``: tests and reviews the tools of a notebook before a model uses them.

Face: `examination` (`Examination`, `examine`, `examine_live`), `findings` (`Finding`, `Edit`),
`subject`. pytest loads `pytest_plugin`, its entry point.

Runs in a short-lived process, on its event loop; nothing of it is imported by a kernel or a bridge.
`subject` is what is checked: the tools as the notebook declared them, the source of its code cells,
and the answers to the tools' examples (`calls`). Each check is a function from a `Subject` to
findings: `answers` judges the answers, `recorded` compares them with earlier ones, the room `lint`
reads the code and the list of tools, and `cost` counts tokens. `examination` runs the notebook and
the checks, `report` prints the findings, and `fixes` corrects. A finding names the tool, the cause
and what to write.
"""
