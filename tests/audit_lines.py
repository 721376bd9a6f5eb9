"""The lines of an audit log, as bridges have written them so far."""

import json

from mcp_notebook.bridge.telemetry.audit_file import list_files


def read_audit(log):
    """Return the records of all files of a log, oldest first."""
    files = list_files(log).values()
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def read_ends(log):
    """Return the records of all files of a log, without the starts of calls."""
    return [record for record in read_audit(log) if record["kind"] != "start"]
