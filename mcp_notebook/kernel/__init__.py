"""What runs inside the user's kernel: tools, calls, results. Never imports ``mcp``."""
