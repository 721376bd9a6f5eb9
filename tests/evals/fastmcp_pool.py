"""FastMCP with the functions of the evals, over stdio: ``python fastmcp_pool.py [search]``.

Runs with the Python of an environment that has FastMCP. With ``search``, it offers its search in
place of the tools.
"""

import sys

from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from pool_functions import FUNCTIONS, echo

transforms = [BM25SearchTransform(max_results=3)] if "search" in sys.argv else []
server = FastMCP("evals", transforms=transforms)
for function in FUNCTIONS:
    server.tool(echo(function))
server.run(transport="stdio", show_banner=False, log_level="CRITICAL")
