"""All settings of this package, each with its default, unit and variable.

Face: `settings.Settings` has them all, `values` reads and checks them; `limits` has those that
bound what clients may ask for. Any process may import this; nothing here is kept for the process.
"""
