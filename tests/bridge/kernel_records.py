"""Records of kernels that do not listen, for tests of who is found."""

import os
import socket

from mcp_notebook.discovery.record_ids import make_id
from mcp_notebook.discovery.records import Record, read_start_time


def make_record(
    jupyter_id: str | None = None, notebook: str | None = None, name: str = "sales"
) -> Record:
    """Return a record of this process."""
    return Record(
        id=make_id(),
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
        host=socket.gethostname(),
        version="1",
        protocol=1,
        name=name,
        notebook=notebook,
        jupyter_id=jupyter_id,
    )
