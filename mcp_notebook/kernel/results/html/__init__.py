"""HTML as a person would see it: as Markdown, with its pictures, videos and sounds.

Face: `to_markdown.convert_html`, `media.find_media`, and `tags`, which reads tags alone.

Runs in the user's kernel, on the thread of the call. Nothing is fetched, and no script runs.
"""
