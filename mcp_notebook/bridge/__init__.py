"""The background process between MCP clients and kernels. Never imports ``kernel`` or IPython."""
