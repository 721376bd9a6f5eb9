"""Measures this project and what people would pick instead, side by side in one run.

`requests` builds the bytes, `raw_clients` sends them; `environments` makes what the others need,
`servers` starts them; `rows` says what is measured, `rounds` does it in turn; `figures` makes
ratios of it, `goals` says what they have to be; `table` shows them.
"""
