"""The files whose paths tools return: which of them may be shown, and what is shown.

Face: `returned_files.Files` renders a path; `shared_folders` decides which files may be opened;
`file_contents` renders what is in one, `data_files` the tables and arrays.

Runs in the user's kernel, on the thread of the call; a file behind a link is read on a thread of
the resource store.
"""
