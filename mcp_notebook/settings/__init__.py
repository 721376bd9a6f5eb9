"""All settings of this package, each with its default, unit and variable.

Face: `settings.Settings` has them all, `values` reads and checks them; `limits` has the numbers of
the three sets of limits, and reads a file of others; `private_files` reads and writes the user's
own files. Any process may import this; nothing here is
kept for the process.
"""
