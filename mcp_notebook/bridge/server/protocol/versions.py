"""Which versions of MCP have which features.

Pure; imports nothing of the SDK but its table of versions.
"""

from mcp_types.version import is_version_at_least

SINCE = {
    "annotations": "2025-03-26",  # the title was one of them until it had a field of its own
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "lastModified": "2025-06-18",
    "resource_link": "2025-06-18",
    "audio": "2025-03-26",
    "icons": "2025-11-25",
}
"""The versions of MCP that introduced kinds of content and fields of tools, resources and results.

Earlier versions must not get them, and nothing else removes them: the SDK has one shape for all
older versions."""


def has_feature(protocol_version: str, feature: str) -> bool:
    """Return whether a version of MCP has a feature that `SINCE` lists."""
    return is_version_at_least(protocol_version, SINCE[feature])
