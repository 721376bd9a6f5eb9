"""All settings of this package, each with its default, unit and variable.

Face: `settings.Settings` has them all, `values` reads and checks them; `limits` has the numbers of
the three sets of limits, and reads a file of others. Any process may import this; nothing here is
kept for the process.
"""
