"""The order in which the site's search lists what it finds."""

import json
import shutil
import subprocess

import pytest
from documents import DOCS


def test_search_lists_pages_for_users_before_those_for_contributors_and_the_changelog():
    node = shutil.which("node") or pytest.skip("Node.js is not installed")
    scorer = (DOCS / "_static" / "search_scorer.js").read_text(encoding="utf-8")
    assert "search_scorer.js" in (DOCS / "conf.py").read_text(encoding="utf-8")
    scores = {"changelog": 90, "guides/results": 1, "contribute/architecture": 50, "questions": 5}
    # The form of Sphinx's searchtools.js: document, title, anchor, description, score, file.
    found = [[name, "", "", None, score, f"{name}.md"] for name, score in scores.items()]
    sort = f"{json.dumps(found)}.sort((a, b) => Scorer.score(b) - Scorer.score(a))"
    done = subprocess.run(
        [node, "-e", f"{scorer}\nconsole.log(JSON.stringify({sort}))"],
        check=True,
        capture_output=True,
        text=True,
    )
    names = [each[0] for each in json.loads(done.stdout)]
    assert names == ["questions", "guides/results", "changelog", "contribute/architecture"]
