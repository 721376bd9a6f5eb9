"""What tools change, beside what they say."""

import pytest
from linted import lint, list_rules, make_subject

from mcp_notebook.check.lint.rules import lint_tools

SETUP = """
import asyncio, bisect, heapq, io, json, os, random, sqlite3, tempfile
from pathlib import Path
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
import requests
orders = pd.DataFrame({"region": ["EU"], "revenue": [1]})
settings = {"limit": 3}
seen = []
count = 0
_cache = {}
connection = sqlite3.connect(":memory:")

def helper(frame):
    orders["x"] = 1

def top(frame):
    return frame.nlargest(1, "revenue")

def send(row):
    requests.post("https://example.com", json=row)

send_later = lambda row: send(row)

def load():
    return orders

def add_column(frame):
    frame["x"] = 1

def logged(function):
    return lambda *given: seen.append(given) or function(*given)

@logged
def count_orders():
    return len(orders)

class Queue:
    def take(self):
        self.taken += 1

class Counted:
    def __init__(self):
        seen.append(1)

class Special(Counted):
    pass

queue = Queue()
figure, axes = plt.subplots()
generator = np.random.default_rng(1)
source = Path("a.txt")
"""


def list_effects(body, options="", setup=SETUP):
    """Return the rules on reading and writing for a tool with this body."""
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    cell = f"%%mcp_tool {options}\ndef look(name: str = 'a', year: int = 1):\n{lines}"
    findings = lint_tools(make_subject([setup, cell], []))
    return [each.rule for each in findings if each.rule in ("writes", "unsaid-read-only")]


WRITES = [
    "orders['x'] = 1",
    "orders.loc[0, 'x'] = 1",
    "orders.x = 1",
    "del orders['x']",
    "frame = orders\nframe['x'] = 1",
    "orders.drop(columns='x', inplace=True)",
    "orders.sort_values('x', inplace=True)\nreturn orders",
    "orders.update(orders)",
    "global count\ncount += 1",
    "settings['limit'] += 1",
    "seen.append(name)",
    "settings.setdefault(name, 1)",
    "helper(orders)",
    "open('out.txt', 'w')",
    "open('out.txt', mode='a').write(name)",
    "Path('out.txt').write_text(name)",
    "orders.to_csv('out.csv')",
    "orders.to_parquet(f'{name}.parquet')",
    "orders.to_sql('orders', connection)",
    "plt.savefig('out.png')",
    "os.remove('out.csv')",
    "os.environ['X'] = name",
    "os.chdir('/')",
    "random.seed(1)",
    "np.random.seed(1)",
    "np.save('x.npy', [1])",
    "json.dump([1], open('x.json', 'w'))",
    "connection.execute('INSERT INTO t VALUES (1)')",
    "connection.execute(f'delete from {name}')",
    "connection.commit()",
    "plt.rcParams['font.size'] = 3",
    "import requests\nrequests.post('https://example.com')",
    "setattr(settings, 'x', 1)",
]


@pytest.mark.parametrize("body", WRITES)
def test_a_tool_that_says_it_reads_and_writes_is_found(body):
    assert list_effects(body, "--read-only") == ["writes"]
    assert list_effects(body) == []


READS = [
    "return orders[orders.region == name].revenue.sum()",
    "frame = orders.copy()\nframe['x'] = 1\nreturn frame",
    "rows = []\nfor row in orders.itertuples():\n    rows.append(row.region)\nreturn rows",
    "counts = {}\nfor each in seen:\n    counts[each] = counts.get(each, 0) + 1\nreturn counts",
    "figure, axes = plt.subplots()\naxes.plot(orders.revenue)\naxes.set_title(name)\nreturn figure",
    "return top(orders)",
    "print(len(orders))\nreturn f'{year:d}'",
    "return json.dumps(settings)",
    "return orders.to_csv()",
    "return max(seen, default=None)",
    "text = Path('a.txt').read_text()\nreturn text.splitlines()",
    "return np.random.default_rng(1).normal(size=3)",
    "name = name.strip().lower()\nreturn [each for each in seen if each == name]",
    "return orders.rename(columns={'region': 'area'}).rename({'x': 'y'}, axis=1)",
    "return orders.groupby('region').apply(top)",
    "return sorted(map(str.upper, seen), key=lambda word: word[1])",
    "return orders.region.map(settings).map(np.sqrt).agg(['sum', max])",
    "frame = orders[orders.region == name].copy()\nframe.loc[0, 'x'] = 1\nreturn frame",
    "counts = {'a': []}\ncounts['a'].append(year)\nreturn counts",
    "return orders.sample(3, random_state=1)",
    "return settings.get(name)",
]


@pytest.mark.parametrize("body", READS)
def test_a_tool_that_only_reads_and_does_not_say_so_is_found(body):
    assert list_effects(body) == ["unsaid-read-only"]
    assert list_effects(body, "--read-only") == []


UNKNOWN = [
    "buffer = io.BytesIO()\nplt.savefig(buffer)\nreturn buffer.getvalue()",
    "orders.to_csv(buffer := io.StringIO())\nreturn buffer.getvalue()",
    "with tempfile.TemporaryDirectory() as folder:\n    orders.to_csv(f'{folder}/x.csv')",
    "model.fit(orders)",
    "row = orders.iloc[0]\nrow['x'] = 1",
    "_cache[name] = orders\nreturn orders",
    "for row in settings.values():\n    row['x'] = 1",
    "return connection.execute('SELECT 1').fetchall()",
    "return random.random()",
    "import somewhere\nsomewhere.go()",
    "def fill(rows, key):\n    rows[key] = 1\n    return rows\nreturn fill({}, name)",
    # A path's methods have the names of a table's, and a queue's those of a dict's.
    "source.rename(Path('old') / name)",
    "source.copy(name)",
    "return seen.get()",
    "return queue.take()",
    # Functions that others call.
    "orders.apply(send, axis=1)",
    "return list(map(send, seen))",
    "orders.agg({'x': send})",
    "again = send\norders.apply(again)",
    "orders.apply(send_later)",
    "return sorted(seen, key=send)",
    "return asyncio.to_thread(send, seen[0])",
    "return asyncio.to_thread(os.remove, name)",
    "return asyncio.to_thread(source.unlink)",
    "return list(map(requests.post, seen))",
    "return list(map(Path.unlink, seen))",
    "return list(map(seen.append, [1]))",
    "return count_orders()",
    "return Special()",
    # What only seems to be made by the function.
    "data = load()\ndata['x'] = 1",
    "add_column(orders)",
    "row = max(seen)\nrow['x'] = 1",
    "numbers = np.asarray(seen)\nnumbers[0] = 1",
    "numbers = orders.to_numpy()\nnumbers[0] = 1",
    "rows = list(seen)\nrows[0]['x'] = 1",
    "rows = list(seen)\nrows[0].append(1)",
    # What is written to, drawn on or drawn from.
    "print(name, file=seen)",
    "return np.add(orders, 1, out=orders)",
    "heapq.heappush(seen, 1)",
    "bisect.insort(seen, 1)",
    "axes.set_title(name)",
    "return generator.normal()",
    "return orders.sample(3)",
]


@pytest.mark.parametrize("body", UNKNOWN)
def test_nothing_is_said_of_what_is_not_certain(body):
    assert list_effects(body) == []
    assert list_effects(body, "--read-only") == []


def test_what_a_tool_in_a_copy_of_the_kernel_changes_is_lost():
    assert list_effects("orders['x'] = 1", "--read-only --run fork") == []
    assert list_effects("orders.to_csv('x.csv')", "--read-only --run fork") == ["writes"]


def test_a_method_that_changes_its_object_writes(shell):
    cell = """
from mcp_notebook import mcp_tool, mcp_tools
@mcp_tools(prefix="diary_")
class Diary:
    notes = []
    @mcp_tool(read_only=True)
    def add(self, note: str) -> int:
        self.notes.append(note)
    @mcp_tool
    def last(self) -> str:
        return self.notes[-1]
"""
    findings = {each.tool: each.rule for each in lint(shell, cell)}
    assert findings == {"diary_add": "writes", "diary_last": "unsaid-read-only"}


def test_a_finding_in_a_helper_names_the_helpers_line():
    cell = "%%mcp_tool --read-only\ndef look():\n    helper(orders)"
    [finding] = lint_tools(make_subject([SETUP, cell], []))
    assert (finding.cell, finding.line) == (1, SETUP.split("\n").index('    orders["x"] = 1') + 1)
    assert "changes `orders`" in finding.reason


def test_a_tool_that_says_that_it_writes_is_left_alone(shell):
    setup = "from mcp_notebook import mcp_tool"
    cell = "@mcp_tool(read_only=False)\ndef look_up():\n    'Rows of the table.'\n    return 1"
    assert list_rules(shell, setup, cell) == []


# -- --fix -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "old", "new"),
    [
        (
            "%%mcp_tool --title Look\ndef look():\n    return 1",
            "%%mcp_tool --title Look",
            "%%mcp_tool --title Look --read-only",
        ),
        (
            "%%mcp_tool look(\n    year: int,\n) -> int\nyear + 1",
            ") -> int",
            ") -> int --read-only",
        ),
        (
            "def look():\n    return 1\n%mcp_tool look",
            "%mcp_tool look",
            "%mcp_tool look --read-only",
        ),
        (
            "from mcp_notebook import mcp_tool\n@mcp_tool\ndef look():\n    return 1",
            "@mcp_tool",
            "@mcp_tool(read_only=True)",
        ),
    ],
)
def test_the_correction_adds_the_option_to_the_declaration(cell, old, new):
    [finding] = lint_tools(make_subject([cell], []))
    assert (finding.fix.old, finding.fix.new) == (old, new)


def test_nothing_is_corrected_where_another_tool_of_the_cell_may_write():
    cell = "%%mcp_tool\ndef look():\n    return 1\ndef change():\n    seen.append(1)"
    [finding] = lint_tools(make_subject([SETUP, cell], []))
    assert finding.rule == "unsaid-read-only"
    assert finding.fix is None
