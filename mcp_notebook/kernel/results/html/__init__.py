"""HTML as a person would see it: as Markdown, with its pictures and sounds.

Face: `to_markdown.convert_html`.

Runs in the user's kernel, on the thread of the call. Nothing is fetched, and no script runs.
"""
