"""All settings of this package, each with its default, unit and variable.

Face: `settings.Settings` has all settings, and `values` reads and checks them; `limits` has the
three sets of limits, and reads a file with others; `private_files` reads and writes the user's own
files, and `shared_files` replaces those that other programs write, too. Any process may import
this; it has no state.
"""
