"""``mcp-notebook check``: tests and reviews the tools of a notebook before a model uses them.

Face: `examination` (`Examination`, `examine`), `findings` (`Finding`, `Edit`), `subject`.

Runs in a short-lived process, on its event loop; nothing of it is imported by a kernel or a bridge.
`subject` is what is checked: the tools as the notebook declared them, the source of its code cells,
and the answers to the tools' examples. Each check is a function from a `Subject` to findings:
`lint` reads the code and the list of tools, and `cost` counts tokens. `examination` runs the
notebook and the checks. A finding names the tool, the cause and what to write.
"""
