"""Files whose paths tools return: which may be shown, and how.

Face: `returned_files.render_path` renders a path; `shared_folders` decides which files may be
opened; `file_contents` renders their content.

Runs in the user's kernel, on the thread of the call; a file behind a link is read on a thread of
the resource store.
"""
