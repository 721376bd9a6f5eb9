"""Cells that declare a prompt, resources, a template and a skill, for tests with other clients."""

CELLS = (
    (
        "import pandas as pd\n"
        "from typing import Literal\n"
        "from mcp_notebook import registry\n"
        'orders = pd.DataFrame({"region": ["EU", "US"]})\n'
        'frames = {"orders": orders, "customers": orders}'
    ),
    (
        '%%mcp_prompt report(year: int, region: Literal["EU", "US"] = "EU")\n'
        "Report on {year} for {region}."
    ),
    "%%mcp_resource data://orders\norders",
    (
        "%%mcp_resource frame://{name} --complete name=frames\n"
        "def frame(name: str):\n"
        "    'A table.'\n"
        "    return frames[name]"
    ),
    "%%mcp_skill weekly\nUse this for a week's report.\n\nCall `rain` first.",
)
LOOK = (
    "%%mcp_prompt\n"
    "import PIL.Image\n"
    "def look() -> list:\n"
    "    'Look at a table and a picture.'\n"
    "    picture = PIL.Image.new('RGB', (2, 2))\n"
    "    return ['Look at this:', orders, picture, 'What is odd?']"
)
"""A further cell, with a prompt that has several messages."""
REPORT = "Report on 2026 for EU."
ORDERS = "region\nEU\nUS\n"
SKILL = "skill://weekly/SKILL.md"
