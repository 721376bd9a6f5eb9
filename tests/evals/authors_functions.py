"""Functions in the manner of public notebooks: nobody wrote them to be tools.

Most have no type hints and a docstring of a line or none; their parameters are the notebook's own
frames and models, or numbers by their defaults; they print, plot, and return what comes to hand.
Each has the call that an assistant would send, with its habits (numbers and booleans as text, lists
for arrays), and what a good answer says: the value of the same call in plain Python.
"""

import re
from dataclasses import dataclass, field
from typing import Any

SETUP = (
    """
import collections
import csv
import datetime as dt
import functools
import io
import itertools
import json
import math
import random
import re
import sqlite3
import string
import time
import warnings
from collections import Counter, defaultdict, namedtuple
from typing import Optional

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tqdm import tqdm
""",
    """
sales = pd.DataFrame({
    "day": pd.date_range("2024-01-01", periods=12, freq="W"),
    "region": ["North", "South", "East"] * 4,
    "amount": [120.5, 80.25, 99.0, 135.0, 70.5, 101.0, 150.75, 66.0, 97.5, 160.0, 61.0, 95.0],
    "units": [12, 8, 9, 13, 7, 10, 15, 6, 9, 16, 6, 9],
})
df = pd.DataFrame({
    "name": ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"],
    "age": [36.0, None, 29.0, 51.0, None, 44.0],
    "city": [" Oslo", "Bergen ", "oslo", "Tromsø", "Bergen", "Oslo"],
    "fare": [7.25, 71.3, 8.05, 53.1, 8.46, 51.9],
    "survived": [0, 1, 1, 1, 0, 0],
})
customers = pd.DataFrame({"region": ["North", "South", "East"], "manager": ["Kari", "Luz", "Mei"]})
prices = pd.Series([10.0, 10.5, 10.2, 11.0, 11.4, 11.1], name="price")
grid = np.arange(12).reshape(3, 4)
tax_rate = 0.25
hourly_rate = 30
stop_words = {"the", "a", "of", "and"}
""",
    """
X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0], [5.0, 6.0], [6.0, 5.0]])
y = X @ np.array([2.0, 3.0]) + 1
labels = np.array([0, 0, 0, 1, 1, 1])
model = LinearRegression().fit(X, y)
clf = DecisionTreeClassifier(random_state=0).fit(X, labels)
scaler = StandardScaler().fit(X)
""",
    """
G = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("b", "d"), ("d", "e")])
conn = sqlite3.connect(":memory:")
conn.execute("create table readings (sensor text, value real)")
conn.executemany("insert into readings values (?, ?)", [("k1", 3.5), ("k2", 4.25), ("k1", 5.5)])
with open("cities.csv", "w", encoding="utf-8") as file:
    file.write("city,people\\nOslo,709000\\nBergen,291000\\n")
with open("log.txt", "w", encoding="utf-8") as file:
    file.write("INFO start\\nERROR disk full\\nINFO retry\\nERROR no route\\n")
fig, ax = plt.subplots()
ax.plot([1, 2, 3], [2, 4, 8])
plt.show()
""",
)
"""The cells that the functions find already run."""
OBJECTS = frozenset({"sales", "df", "customers", "model", "clf", "scaler", "G", "conn", "ax"})
"""The variables that a client cannot send."""


@dataclass(frozen=True)
class Function:
    """A function of a notebook, the call of an assistant, and what is right."""

    kind: str
    cell: str
    """Without a magic, ``%mcp_tool`` declares the last function in a cell of its own; empty, if the
    cell of another function declares this one, too."""
    sent: dict[str, Any]
    """The arguments by the author's names; clients may know them by others."""
    answer: str | None
    """Plain Python: what is in its value must be in the answer; None, if no answer can be good."""
    sentence: str = ""
    """A pattern of the right sentence, on the card, at the declaration or in an error."""
    pictures: int = 0
    """The fewest in a good answer."""
    tool: str = ""
    """The tool's name, if that is not the last function's."""
    after: str = ""
    """A cell that runs once the tool is declared."""
    name: str = field(init=False)

    def __post_init__(self) -> None:
        magic = re.search(r"^%%mcp_tool (\w+)\(", self.cell, re.MULTILINE)
        names = magic or re.findall(r"^def (\w+)", self.cell, re.MULTILINE)
        object.__setattr__(self, "name", self.tool or (magic[1] if magic else names[-1]))

    @property
    def declaration(self) -> tuple[str, ...]:
        """The cells that make it a tool."""
        cell = self.cell.strip()
        if not cell:
            return ()
        return (cell,) if "%mcp_tool" in cell else (cell, f"%mcp_tool {self.name}")

    @property
    def plain(self) -> str:
        """The cell as plain Python, which defines what is asked for."""
        lines = self.cell.strip().splitlines()
        if not lines or lines[0].startswith("%%mcp_tool "):
            return ""
        return "\n".join(line for line in lines if "%mcp_tool" not in line)


FUNCTIONS: list[Function] = []


def _add(kind: str, cell: str, sent: dict[str, Any], answer: str | None, **more: Any) -> None:
    FUNCTIONS.append(Function(kind, cell, sent, answer, **more))


# -- the notebook's objects ------------------------------------------------------------------------

_OBJECTS = "objects of the notebook"


def _object(cell: str, answer: str, sent: dict[str, Any] | None = None, **more: Any) -> None:
    _add(_OBJECTS, cell, sent or {}, answer, **more)


_object(
    '''
def overview(df):
    """Describe the numeric columns"""
    return df.describe()
''',
    "df.describe().loc[['mean', 'max']]",
)
_object(
    '''
def missing_report(df):
    """Share of missing values per column."""
    return (df.isna().mean() * 100).round(1)
''',
    "[33.3, 'age', 'fare']",
)
_object(
    """
def top_fares(df, n: int = 3):
    return df.nlargest(n, "fare")[["name", "fare"]]
""",
    "df.nlargest(2, 'fare')[['name', 'fare']]",
    {"n": 2},
)
_object(
    '''
def total_by_region(sales):
    """Sum of amount by region"""
    return sales.groupby("region")["amount"].sum()
''',
    "sales.groupby('region')['amount'].sum()",
)
_object(
    """
def region_sales(sales, region):
    subset = sales[sales.region == region]
    return subset.amount.sum()
""",
    "region_sales(sales, 'North')",
    {"region": "North"},
)
_object(
    """
def with_managers(sales, customers):
    merged = sales.merge(customers, on="region", how="left")
    return merged.groupby("manager").units.sum().reset_index()
""",
    "with_managers(sales, customers)",
)
_object(
    '''
def weekly_change(sales, column, periods):
    """Change against the week before"""
    return sales[column].diff(periods).dropna().round(2)
''',
    "weekly_change(sales, 'units', 2).head(3)",
    {"column": "units", "periods": 2},
)
_object(
    '''
def clean_cities(df):
    """Strip and title-case the cities."""
    out = df.copy()
    out["city"] = out["city"].str.strip().str.title()
    return out["city"].value_counts()
''',
    "clean_cities(df)",
)
_object(
    '''
def fill_age(df, strategy="median"):
    """Fill missing ages."""
    value = getattr(df["age"], strategy)()
    print("filled with", value)
    return df["age"].fillna(value).tolist()
''',
    "fill_age(df, 'mean')",
    {"strategy": "mean"},
)
_object(
    """
def coefficients(model):
    return dict(zip(["x1", "x2"], model.coef_.round(3)))
""",
    "{'x1': 2.0, 'x2': 3.0}",
)
_object(
    '''
def predict_one(model, a, b):
    """Predict a single value"""
    return model.predict([[a, b]])[0]
''',
    "predict_one(model, 2, 3.5)",
    {"a": 2, "b": 3.5},
)
_object(
    '''
def score_model(model, digits: int = 3):
    """R2 on the training data."""
    return round(model.score(X, y), digits)
''',
    "1.0",
)
_object(
    '''
def classify(clf, points):
    """Classes of some points"""
    return clf.predict(points)
''',
    "[0, 1]",
    {"points": [[1, 2], [6, 5]]},
)
_object(
    """
def importances(clf):
    return pd.Series(clf.feature_importances_, index=["x1", "x2"])
""",
    "importances(clf)",
)
_object(
    '''
def scale(scaler, rows):
    """Scale with the fitted scaler."""
    return scaler.transform(rows).round(2)
''',
    "scale(scaler, [[1, 2]])",
    {"rows": [[1, 2]]},
)
_object(
    '''
def degree_table(G):
    """Degree of each node"""
    return dict(G.degree())
''',
    "dict(G.degree())",
)
_object(
    '''
def route(G, source, target):
    """Shortest path"""
    return nx.shortest_path(G, source, target)
''',
    "['a', 'b', 'd', 'e']",
    {"source": "a", "target": "e"},
)
_object(
    """
def central_nodes(G, top: int = 2):
    scores = nx.betweenness_centrality(G)
    return sorted(scores.items(), key=lambda kv: -kv[1])[:top]
""",
    "central_nodes(G, 1)",
    {"top": "1"},
)
_object(
    '''
def sensor_mean(conn, sensor):
    """Average reading of a sensor"""
    row = conn.execute("select avg(value) from readings where sensor = ?", (sensor,)).fetchone()
    return row[0]
''',
    "4.5",
    {"sensor": "k1"},
)
_object(
    '''
def list_readings(conn):
    """All rows"""
    return conn.execute("select sensor, value from readings order by value")
''',
    "[('k1', 3.5), ('k2', 4.25), ('k1', 5.5)]",
)
_object(
    """
def read_query(query, conn):
    return pd.read_sql(query, conn)
""",
    "['k1', 9.0]",
    {"query": "select sensor, sum(value) as total from readings where sensor = 'k1'"},
)
_object(
    '''
def mark_level(ax, level=5):
    """Draw a horizontal line"""
    ax.axhline(level, color="red")
    return ax
''',
    "[]",
    {"level": 6},
    pictures=1,
)
_object(
    """
def correlation(df):
    corr = df[["fare", "survived"]].corr().round(3)
    plt.matshow(corr)
    plt.show()
    return corr
""",
    "df[['fare', 'survived']].corr().round(3)",
    pictures=1,
)
_object(
    '''
def sum_above(sales, minimum=100.0, strict=True):
    """Total of the amounts above a minimum."""
    kept = sales[sales.amount > minimum] if strict else sales[sales.amount >= minimum]
    return kept.amount.sum()
''',
    "sales[sales.amount >= 99].amount.sum()",
    {"minimum": 99, "strict": False},
)
_object(
    '''
def share_of(sales, region=None):
    """Share of each region, or of one."""
    share = sales.groupby("region").units.sum() / sales.units.sum()
    return share if not region else share[region]
''',
    "share_of(sales)",
    {"region": ""},
)

_NO_OBJECT = "objects that the notebook does not have"
_add(
    _NO_OBJECT,
    '''
def count_rows(raw_frame):
    """Rows by region"""
    return raw_frame.groupby("region").size()
''',
    {"raw_frame": "sales"},
    None,
    sentence=r"raw_frame: got 'sales' \(string\); allowed: array of object",
)
_add(
    _NO_OBJECT,
    """
def evaluate(estimator, X_test, y_test):
    return estimator.score(X_test, y_test)
""",
    {"estimator": "model", "X_test": [[1, 2], [2, 3]], "y_test": [9, 14]},
    None,
    sentence=r"%%mcp_tool my_evaluate\(",
)
_add(
    _NO_OBJECT,
    '''
def tidy(data: pd.DataFrame, estimator: LinearRegression):
    """Predictions beside the data"""
    return data.assign(predicted=estimator.predict(data))
''',
    {"data": [{"a": 1, "b": 2}], "estimator": "model"},
    None,
    sentence=r"%%mcp_tool my_tidy\(",
)
_add(
    _NO_OBJECT,
    """
def node_count(network):
    return network.number_of_nodes()
""",
    {"network": "G"},
    None,
    sentence=r"%%mcp_tool my_node_count\(",
)

# -- numbers, booleans and text that a default tells -----------------------------------------------

_DEFAULTS = "defaults as types"


def _default(cell: str, answer: str | None, sent: dict[str, Any], **more: Any) -> None:
    _add(_DEFAULTS, cell, sent, answer, **more)


_default("def times(x, k=3):\n    return x * k\n", "20", {"x": 5, "k": "4"})
_default(
    '''
def compound(principal, rate=0.05, years=10):
    """Compound interest"""
    return round(principal * (1 + rate) ** years, 2)
''',
    "compound(1000, 0.04, 5)",
    {"principal": 1000, "rate": "0.04", "years": "5"},
)
_default(
    '''
def shout(text, upper=True):
    """Upper or lower case"""
    return text.upper() if upper else text.lower()
''',
    "'hello'",
    {"text": "Hello", "upper": "false"},
)
_default(
    '''
def discount(price, percent=10, rounded=False):
    """Price after discount."""
    result = price * (100 - percent) / 100
    return round(result) if rounded else result
''',
    "discount(99.9, 15, False)",
    {"price": 99.9, "percent": 15, "rounded": False},
)
_default(
    '''
def repeat_word(word, n=2, sep="-"):
    """Repeat a word"""
    return sep.join([word] * n)
''',
    "'ha+ha+ha'",
    {"word": "ha", "n": 3, "sep": "+"},
)
_default(
    """
def pad(code, width=6, fill="0"):
    return str(code).rjust(width, fill)
""",
    "'00000042'",
    {"code": 42, "width": 8, "fill": "0"},
)
_default(
    '''
def sort_scores(scores, descending=True):
    """Sorted scores"""
    return sorted(scores, reverse=descending)
''',
    "[1, 2, 3]",
    {"scores": [3, 1, 2], "descending": "false"},
)
_default(
    '''
def convert(amount, rate=tax_rate, inclusive=True):
    """Tax of an amount"""
    return amount * rate / (1 + rate) if inclusive else amount * rate
''',
    "convert(200, 0.1, False)",
    {"amount": 200, "rate": "0.1", "inclusive": "false"},
)
_default(
    "def power(base, exponent=2):\n    return base ** exponent\n",
    None,
    {"base": 3, "exponent": "two"},
    sentence=r"exponent: got 'two'.*(number|integer)",
)
_default(
    '''
def bins(n=4, labels=None):
    """Names of bins"""
    return labels[:n] if labels else [f"bin {i}" for i in range(n)]
''',
    "['bin 0', 'bin 1', 'bin 2']",
    {"n": "3", "labels": ""},
)

# -- text for what is hinted -----------------------------------------------------------------------

_HINTED = "text for what is hinted"


def _hinted(cell: str, answer: str | None, sent: dict[str, Any], **more: Any) -> None:
    _add(_HINTED, cell, sent, answer, **more)


_hinted(
    '''
def area(width: float, height: float) -> float:
    """Area of a rectangle."""
    return width * height
''',
    "7.5",
    {"width": "2.5", "height": "3"},
)
_hinted(
    '''
def invite(name: str, plus_one: bool = False) -> str:
    """Text of an invitation"""
    return f"Dear {name}" + (" and guest" if plus_one else "")
''',
    "'Dear Ada and guest'",
    {"name": "Ada", "plus_one": "true"},
)
_hinted(
    """
def flip(flags: list[bool]):
    return [not f for f in flags]
""",
    "[False, True]",
    {"flags": ["true", "false"]},
)
_hinted(
    '''
def settings_report(options: dict[str, bool]) -> int:
    """Count what is on"""
    return sum(1 for on in options.values() if on is True)
''',
    "1",
    {"options": {"log": "True", "cache": "false"}},
)
_hinted(
    '''
def page(items: list, size: Optional[int] = None):
    """First page of a list"""
    return items[:size]
''',
    "['p', 'q', 'r']",
    {"items": ["p", "q", "r"], "size": ""},
)
_hinted(
    '''
def limit_rows(n: Optional[int] = None, verbose: Optional[bool] = None):
    """Rows of sales, perhaps some only"""
    return len(sales.head(n)) if n is not None else len(sales)
''',
    "12",
    {"n": "null", "verbose": "null"},
)
_hinted(
    """
def describe_flag(value: bool | None = None):
    return {True: "on", False: "off", None: "unset"}[value]
""",
    "'off'",
    {"value": "FALSE"},
)
_hinted(
    '''
def when(day: dt.date, days: int = 7) -> dt.date:
    """A date some days later"""
    return day + dt.timedelta(days=days)
''',
    "'2024-03-04'",
    {"day": "2024-02-26", "days": "7"},
)
_hinted(
    '''
def mean_of(values: np.ndarray) -> float:
    """Mean"""
    return values.mean()
''',
    "2.5",
    {"values": [1, 2, 3, 4]},
)
_hinted(
    '''
def rows_of(frame: pd.DataFrame, column: str):
    """Mean of a column of rows"""
    return frame[column].mean()
''',
    "3.0",
    {"frame": [{"a": 2}, {"a": 4}], "column": "a"},
)

# -- lists for array code --------------------------------------------------------------------------

_ARRAYS = "lists for array code"


def _array(cell: str, answer: str | None, sent: dict[str, Any], **more: Any) -> None:
    _add(_ARRAYS, cell, sent, answer, **more)


_array("def transpose(m):\n    return m.T\n", "[[1, 3], [2, 4]]", {"m": [[1, 2], [3, 4]]})
_array(
    '''
def gram(A):
    """Gram matrix"""
    return A.T @ A
''',
    "[[10, 14], [14, 20]]",
    {"A": [[1, 2], [3, 4]]},
)
_array(
    '''
def normalise(v):
    """Scale to zero mean and unit deviation"""
    return (v - v.mean()) / v.std()
''',
    "[-1.224745, 0, 1.224745]",
    {"v": [1, 2, 3]},
    sentence="Nothing says the type of `v`",  # a Series would have another deviation
)
_array(
    '''
def inner(image):
    """Cut the border off"""
    return image[1:-1, 1:-1]
''',
    "[[5, 6]]",
    {"image": [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]},
)
_array(
    '''
def rmse(actual, predicted):
    """Root mean squared error"""
    return np.sqrt(np.mean((np.asarray(actual) - np.asarray(predicted)) ** 2))
''',
    "rmse([1, 2, 3], [1, 2, 5])",
    {"actual": [1, 2, 3], "predicted": [1, 2, 5]},
)
_array(
    """
def softmax(z):
    e = np.exp(z - np.max(z))
    return e / e.sum()
""",
    "softmax(np.array([1.0, 2.0, 3.0]))",
    {"z": [1, 2, 3]},
)
_array(
    """
def trace_of(a):
    rows, cols = a.shape
    return sum(a[i, i] for i in range(rows))
""",
    "5",
    {"a": [[1, 2], [3, 4]]},
)
_array(
    '''
def demean(frame):
    """Groups less their mean"""
    return frame["v"] - frame.groupby("g")["v"].transform("mean")
''',
    "[-1.0, 1.0, 0.0]",
    {"frame": [{"g": "a", "v": 1}, {"g": "a", "v": 3}, {"g": "b", "v": 5}]},
)
_array(
    '''
def returns(series):
    """Percent change"""
    return series.pct_change().dropna().round(4)
''',
    "[0.05, -0.0286]",
    {"series": [10.0, 10.5, 10.2]},
)
_array(
    '''
def distances(points, centre):
    """Distance of each point to the centre"""
    return np.linalg.norm(points - centre, axis=1)
''',
    "[5.0, 0.0]",
    {"points": [[3, 4], [0, 0]], "centre": [0, 0]},
    sentence=r"points.*ndarray",
)
_array(
    '''
def double_list(xs):
    """Twice in a row"""
    return xs * 2
''',
    "[1, 2, 1, 2]",
    {"xs": [1, 2]},
)
_array(
    '''
def solve(A, b):
    """Solve a linear system"""
    return np.linalg.solve(A, b)
''',
    "[2.0, 1.0]",
    {"A": [[1, 1], [1, -1]], "b": [3, 1]},
)
_array(
    """
def threshold(signal, level=0.5):
    return (signal > level).astype(int)
""",
    "[0, 1, 1]",
    {"signal": [0.1, 0.6, 0.9], "level": 0.5},
    sentence=r"signal.*ndarray",
)
_array(
    '''
def cosine(u, v):
    """Cosine similarity"""
    return u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
''',
    "0.6",
    {"u": [3, 4], "v": [1, 0]},
)
_array(
    """
def standard_table(table):
    return table[["a", "b"]].mean()
""",
    "[2.0, 5.0]",
    {"table": [{"a": 1, "b": 4}, {"a": 3, "b": 6}]},
)

# -- names of other alphabets ----------------------------------------------------------------------

_NAMES = "names that are not ASCII"


def _named(cell: str, answer: str | None, sent: dict[str, Any], **more: Any) -> None:
    _add(_NAMES, cell, sent, answer, **more)


_named(
    '''
def normal_density(x, μ=0, σ=1):
    """Density of the normal distribution"""
    return math.exp(-((x - μ) / σ) ** 2 / 2) / (σ * math.sqrt(2 * math.pi))
''',
    "normal_density(1, 0, 2)",
    {"x": 1, "μ": 0, "σ": 2},
)
_named(
    '''
def lorentz(β):
    """Lorentz factor"""
    return 1 / math.sqrt(1 - β ** 2)
''',
    "1.25",
    {"β": 0.6},
)
_named(
    "def ridge_penalty(w, λ=0.1):\n    return λ * sum(v * v for v in w)\n",
    "2.5",
    {"w": [1, 2], "λ": "0.5"},
)
_named(
    '''
def ventas_por_año(año, país="ES"):
    """Etiqueta de ventas"""
    return f"{país} {año + 1}"
''',
    None,
    {"año": 2024, "país": "FR"},
    sentence=r"ventas_por_año.*--name",
)
_named(
    '''
def euler_step(y0, Δt=0.1, α=1.0):
    """One step of Euler's method"""
    return y0 - α * y0 * Δt
''',
    "8.0",
    {"y0": 10, "Δt": 0.2, "α": 1.0},
)
_named(
    '''
def rotate(x, y, θ):
    """Rotate a point"""
    return round(x * math.cos(θ) - y * math.sin(θ), 6), round(x * math.sin(θ) + y * math.cos(θ), 6)
''',
    "(0.540302, 0.841471)",
    {"x": 1, "y": 0, "θ": 1},
)
_named(
    """
def zoll(größe):
    return round(größe / 2.54, 2)
""",
    "70.87",
    {"größe": 180},
)
_named(
    '''
def tax_on(売上, rate=0.1):
    """Tax on sales"""
    return 売上 * rate
''',
    "50.0",
    {"売上": 500, "rate": 0.1},
    sentence=r"売上.*(rename|ASCII|letters)",
)
_named(
    """
def sigmoid(x, ε=1e-9):
    return 1 / (1 + math.exp(-x) + ε)
""",
    "0.880797",
    {"x": 2},
)
_named(
    '''
def moyenne(valeurs, été=2):
    """Moyenne pondérée"""
    return sum(v * été for v in valeurs) / len(valeurs)
''',
    "6.0",
    {"valeurs": [1, 3], "été": 3},
)
_named(
    '''
def discount_cash(flows, ρ: float = 0.05) -> float:
    """Present value"""
    return sum(f / (1 + ρ) ** i for i, f in enumerate(flows))
''',
    "150.0",
    {"flows": [100, 55], "ρ": "0.1"},
)

# -- results ---------------------------------------------------------------------------------------

_TUPLES = "tuples"


def _tuple(cell: str, answer: str, sent: dict[str, Any] | None = None, **more: Any) -> None:
    _add(_TUPLES, cell, sent or {}, answer, **more)


_tuple(
    '''
def split(n: int, seed: int = 0):
    """Split the numbers below n"""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    return order[: n // 2], order[n // 2:]
''',
    "split(6)",
    {"n": 6},
)
_tuple(
    '''
def fit_line(x, y):
    """Slope and intercept"""
    slope, intercept = np.polyfit(x, y, 1)
    return slope, intercept
''',
    "[2.0]",
    {"x": [0, 1, 2], "y": [1, 3, 5]},
)
_tuple(
    """
def train(test_size: float = 0.5):
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=test_size, random_state=1)
    fitted = LinearRegression().fit(X_tr, y_tr)
    return fitted, fitted.score(X_te, y_te)
""",
    "['LinearRegression', 1.0]",
    {"test_size": "0.5"},
)
_tuple(
    '''
def prepare():
    """Features and target"""
    return X, y
''',
    "X, y",
)
_tuple(
    '''
def head_and_stats(n=2):
    """First rows, and the mean"""
    return sales.head(n), sales.amount.mean()
''',
    "sales[['region', 'amount']].head(2), sales.amount.mean()",
    {"n": 2},
)
_tuple(
    """
def min_max(values):
    return min(values), max(values)
""",
    "(1, 9)",
    {"values": [4, 1, 9]},
)
_tuple(
    '''
def t_test(a, b):
    """t statistic and p value"""
    t, p = stats.ttest_ind(a, b)
    return round(t, 4), round(p, 4)
''',
    "t_test([1, 2, 3, 4], [2, 4, 6, 9])",
    {"a": [1, 2, 3, 4], "b": [2, 4, 6, 9]},
)
_tuple(
    '''
def scaled():
    """Scaled features with their scaler"""
    s = StandardScaler()
    return s.fit_transform(X), s
''',
    "scaled()[0], 'StandardScaler'",
)
_tuple(
    '''
def eigen(m):
    """Eigenvalues and vectors"""
    values, vectors = np.linalg.eigh(m)
    return values, vectors
''',
    "[1.0, 3.0, 0.7071]",
    {"m": [[2, 1], [1, 2]]},
)
_tuple(
    '''
def plot_and_data(n: int = 4):
    """Squares as a plot and numbers"""
    fig, ax = plt.subplots()
    data = [i * i for i in range(n)]
    ax.plot(data)
    return fig, data
''',
    "[0, 1, 4, 9, 16]",
    {"n": "5"},
    pictures=1,
)

_PRINTS = "prints, plots and None"


def _print(cell: str, answer: str, sent: dict[str, Any] | None = None, **more: Any) -> None:
    _add(_PRINTS, cell, sent or {}, answer, **more)


_print(
    '''
def report(name):
    """Print a report"""
    print("Report for", name)
    print("=" * 20)
    print("Total:", sales.amount.sum())
''',
    "'Report for Ada', sales.amount.sum()",
    {"name": "Ada"},
)
_print(
    """
def show_head(n=2):
    print(sales.head(n))
""",
    "['North', 120.5, 'South', 80.25]",
    {"n": 2},
)
_print(
    '''
def check_nulls():
    """Print null counts and return the total"""
    for column in df.columns:
        print(column, df[column].isnull().sum())
    return int(df.isnull().sum().sum())
''',
    "['age 2', 'fare 0', 2]",
)
_print(
    '''
def frame_info():
    """info() of the frame"""
    df.info()
''',
    "['survived', 'float64', 4]",
)
_print(
    """
def count_down(start: int = 3):
    while start:
        print(start, end=" ")
        start -= 1
    print("done")
""",
    "'4 3 2 1 done'",
    {"start": "4"},
)
_print(
    '''
def plot_amounts():
    """Amounts by week"""
    plt.figure(figsize=(4, 3))
    plt.plot(sales.day, sales.amount)
    plt.title("Amounts")
    plt.show()
''',
    "[]",
    pictures=1,
)
_print(
    '''
def plot_hist(column, bins=5):
    """Histogram of a column"""
    plt.hist(sales[column], bins=bins)
    plt.xlabel(column)
''',
    "[]",
    {"column": "units", "bins": 4},
    pictures=1,
)
_print(
    """
def region_bars():
    return sales.groupby("region").units.sum().plot(kind="bar")
""",
    "[]",
    pictures=1,
)
_print(
    '''
def two_panels(kind="line"):
    """Two panels, and the largest"""
    fig, axes = plt.subplots(1, 2)
    sales.amount.plot(ax=axes[0], kind=kind)
    sales.units.plot(ax=axes[1], kind=kind)
    plt.tight_layout()
    plt.show()
    print("largest", sales.amount.max())
''',
    "['largest 160']",
    pictures=1,
)
_print(
    '''
def scatter(size: float = 10):
    """Scatter plot"""
    fig, ax = plt.subplots()
    ax.scatter(sales.units, sales.amount, s=size)
    return fig, ax
''',
    "[]",
    {"size": "20"},
    pictures=1,
)
_print(
    """
def box():
    fig, axes = plt.subplots(1, 2)
    axes[0].boxplot(sales.units)
    return axes
""",
    "[]",
    pictures=1,
)
_print(
    '''
def pie(title: str = "Units"):
    """Pie by region"""
    sales.groupby("region").units.sum().plot.pie(title=title)
    plt.show()
''',
    "[]",
    {"title": "Shares"},
    pictures=1,
)
_print(
    '''
def slow_sum(n: int = 5):
    """A sum with a bar"""
    total = 0
    for i in tqdm(range(n)):
        total += i
    return total
''',
    "15",
    {"n": "6"},
)
_print(
    """
def progress_words(steps=3):
    for i in range(steps):
        print(f"\\rstep {i + 1}/{steps}", end="")
    print()
    return steps ** 2
""",
    "['step 4/4', 16]",
    {"steps": 4},
)
_print(
    '''
def no_answer(value):
    """Keep a value"""
    kept_values = globals().setdefault("kept_values", [])
    kept_values.append(value)
''',
    "[]",
    {"value": 3},
)

_OBJECT_RESULTS = "classes, iterators and other results"


def _result(cell: str, answer: str, sent: dict[str, Any] | None = None, **more: Any) -> None:
    _add(_OBJECT_RESULTS, cell, sent or {}, answer, **more)


_result(
    '''
class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance
        self._pin = 9182

def open_account(owner, balance=0):
    """Open an account"""
    return Account(owner, balance)
''',
    "['ada', 120]",
    {"owner": "ada", "balance": 120},
)
_result(
    """
class Walker:
    def __init__(self):
        self.position = 0
        self.path = [0]

    def step(self, by):
        self.position += by
        self.path.append(self.position)
        return self

def walk(steps):
    w = Walker()
    for s in steps:
        w.step(s)
    return w
""",
    "['position', 2, 'path', 3]",
    {"steps": [1, 2, -1]},
)
_result(
    """
class Stack:
    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items

def make_stacks(n: int = 2):
    return [Stack([i, i * 10]) for i in range(1, n + 1)]
""",
    "[10, 20, 30]",
    {"n": "3"},
)
_result(
    '''
class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right

def small_tree(root=5):
    """A tree of three"""
    return {"tree": Node(root, Node(root - 1), Node(root + 1)), "size": 3}
''',
    "['value', 8, 7, 9, 3]",
    {"root": 8},
)
_result(
    '''
def squares(n: int = 5):
    """Squares, one by one"""
    for i in range(n):
        yield i * i
''',
    "[0, 1, 4, 9]",
    {"n": "4"},
)
_result(
    """
def lengths(words):
    return map(len, words)
""",
    "[3, 5]",
    {"words": ["one", "three"]},
)
_result(
    """
def pairs(left, right):
    return zip(left, right)
""",
    "[1, 'a', 2, 'b']",
    {"left": [1, 2], "right": ["a", "b"]},
)
_result(
    '''
def long_words(text: str, minimum: int = 4):
    """Words that are long"""
    return filter(lambda w: len(w) >= minimum, text.split())
''',
    "['quick', 'brown']",
    {"text": "the quick brown fox", "minimum": "5"},
)
_result(
    """
def by_region():
    return sales.groupby("region")
""",
    "['East', 'North', 'South']",
)
_result(
    '''
def rolling(window=3):
    """Rolling mean"""
    return prices.rolling(window)
''',
    "['4']",
    {"window": 4},
)
_result(
    """
def read_cities():
    return csv.DictReader(open("cities.csv", encoding="utf-8"))
""",
    "['Oslo', 709000, 'Bergen', 291000]",
)
_result(
    '''
def point(x, y):
    """A named tuple"""
    Point = namedtuple("Point", "x y")
    return Point(x, y)
''',
    "['x', 4, 'y', 5]",
    {"x": 4, "y": 5},
)
_result(
    '''
def count_letters(text):
    """Letters and how often"""
    return Counter(text.replace(" ", ""))
''',
    "['l', 3, 'o', 2]",
    {"text": "hello wold"},
)
_result(
    """
def adder(n=1):
    return lambda x: x + n
""",
    "['function']",
    {"n": 2},
)
_result(
    '''
def fit_regression(degree: int = 1):
    """A fitted model"""
    return LinearRegression().fit(X ** degree, y)
''',
    "['LinearRegression']",
    {"degree": "1"},
)
_result(
    '''
def subgraph(nodes):
    """A part of the graph"""
    return G.subgraph(nodes)
''',
    "['b', 'c', 'd']",
    {"nodes": ["b", "c", "d"]},
)
_result(
    """
def matches(pattern, text):
    return re.finditer(pattern, text)
""",
    "['12', '345']",
    {"pattern": "[0-9]+", "text": "a12b345"},
)
_result(
    '''
def first_number(text):
    """The first number of a text"""
    return re.search(r"\\d+", text)
''',
    "['42']",
    {"text": "room 42"},
)

# -- what simply works: text, dates, statistics, simulation, files ---------------------------------

_PLAIN = "plain functions"


def _plain(cell: str, answer: str | None, sent: dict[str, Any] | None = None, **more: Any) -> None:
    _add(_PLAIN, cell, sent or {}, answer, **more)


_plain(
    '''
def tokenize(text):
    """Words without stop words"""
    return [w for w in re.findall(r"[a-z]+", text.lower()) if w not in stop_words]
''',
    "['cat', 'sat']",
    {"text": "The cat and a sat"},
)
_plain(
    """
def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
""",
    "'hello-world-2'",
    {"title": "Hello, World! 2"},
)
_plain(
    '''
def days_between(start, end):
    """Days between two dates"""
    return (pd.Timestamp(end) - pd.Timestamp(start)).days
''',
    "29",
    {"start": "2024-02-01", "end": "2024-03-01"},
)
_plain(
    '''
def weekday(date):
    """Name of the weekday"""
    return dt.datetime.strptime(date, "%Y-%m-%d").strftime("%A")
''',
    "'Thursday'",
    {"date": "2024-02-29"},
)
_plain(
    """
def month_ends(year):
    return pd.date_range(f"{year}-01-01", periods=3, freq="ME")
""",
    "['2024-01-31', '2024-02-29', '2024-03-31']",
    {"year": 2024},
)
_plain(
    '''
def summary_stats(values):
    """Mean, median and deviation"""
    return {"mean": np.mean(values), "median": np.median(values), "std": np.std(values)}
''',
    "summary_stats([2, 4, 4, 10])",
    {"values": [2, 4, 4, 10]},
)
_plain(
    '''
def coin_flips(n, seed):
    """Share of heads"""
    rng = random.Random(seed)
    heads = sum(rng.random() < 0.5 for _ in range(n))
    print(heads, "heads")
    return heads / n
''',
    "coin_flips(100, 7)",
    {"n": 100, "seed": 7},
)
_plain(
    """
def estimate_pi(n: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    pts = rng.random((n, 2))
    return 4 * np.mean((pts ** 2).sum(axis=1) <= 1)
""",
    "estimate_pi(1000, 3)",
    {"n": "1000", "seed": "3"},
)
_plain(
    '''
def pivot():
    """Units by region and month"""
    return sales.assign(month=sales.day.dt.month).pivot_table(
        index="region", columns="month", values="units", aggfunc="sum")
''',
    "pivot().fillna(0).values.max(), 'North'",
)
_plain(
    '''
def errors_in(path: str) -> list:
    """Lines with ERROR"""
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.startswith("ERROR")]
''',
    "['ERROR disk full', 'ERROR no route']",
    {"path": "log.txt"},
)
_plain(
    """
def load_cities(path):
    return pd.read_csv(path)
""",
    "['Oslo', 709000]",
    {"path": "cities.csv"},
)
_plain(
    '''
def parse(payload):
    """Parse a JSON text"""
    return json.loads(payload)["total"]
''',
    "17",
    {"payload": '{"total": 17}'},
)
_plain(
    '''
def total(*nums):
    """Sum of all numbers"""
    return sum(nums)
''',
    "6",
    {"nums": [1, 2, 3]},
)
_plain(
    "def label(prefix, *parts):\n    return prefix + ':' + '/'.join(parts)\n",
    "'path:a/b'",
    {"prefix": "path", "parts": ["a", "b"]},
)
_plain(
    '''
def ratio(a, b):
    """a over b"""
    return a / b
''',
    "0.25",
    {"a": 1, "b": 4},
)
_plain(
    '''
def careful_mean(values):
    """Mean, with a warning for few values"""
    if len(values) < 3:
        warnings.warn("only few values")
    return sum(values) / len(values)
''',
    "['only few values', 3.5]",
    {"values": [3, 4]},
)
_plain(
    """
def log_all(values: np.ndarray):
    return np.log(values)
""",
    "['divide by zero', 0.6931]",
    {"values": [0, 2]},
)
_plain(
    '''
def net_price(gross):
    """Without tax"""
    return gross / (1 + tax_rate)
''',
    "80.0",
    {"gross": 100},
)
_plain(
    '''
def caesar(text: str, shift: int) -> str:
    """Caesar cipher"""
    letters = string.ascii_lowercase
    return text.translate(str.maketrans(letters, letters[shift:] + letters[:shift]))
''',
    "'khoor'",
    {"text": "hello", "shift": "3"},
)

# -- ways to declare -------------------------------------------------------------------------------

_TOGETHER = "a line or cell with a broken one"
_LINE = """
def celsius(f):
    return (f - 32) / 1.8

def kelvin(c):
    return c + 273.15

def keep_open(handle: io.TextIOBase):
    return handle.name
"""
_add(
    _TOGETHER,
    _LINE + "\n%mcp_tool celsius kelvin fahrenhiet keep_open",
    {"f": 212},
    "100.0",
    tool="celsius",
)
_add(_TOGETHER, "", {"c": 0}, "273.15", tool="kelvin")
_add(
    _TOGETHER,
    "",
    {},
    None,
    sentence=r"fahrenhiet.*not defined",
    tool="fahrenhiet",
)
_add(
    _TOGETHER,
    '''
%%mcp_tool
def inches(cm):
    """Centimetres in inches"""
    return round(cm / 2.54, 2)

def bad_range(n: "Numbr"):
    return list(range(n))

def feet(m):
    """Metres in feet"""
    return round(m / 0.3048, 2)
'''.lstrip(),
    {"cm": 254},
    "100.0",
    tool="inches",
)
_add(_TOGETHER, "", {"m": 3}, "9.84", tool="feet")
_add(_TOGETHER, "", {"n": 3}, "[0, 1, 2]", tool="bad_range", sentence="Numbr")

_CELLS = "cells as tools"
_add(
    _CELLS,
    """
%%mcp_tool best_week(region="North")
part = sales[sales.region == region]
part.loc[part.amount.idxmax(), ["day", "amount"]]
""".strip(),
    {"region": "South"},
    "['2024-01-14', 80.25]",
)
_add(
    _CELLS,
    """
%%mcp_tool area_of(radius)
from math import *
pi * radius ** 2
""".strip(),
    {"radius": 1},
    "3.14159",
    sentence=r"(another|own|separate|earlier|ordinary|other) cell|import math|from math import pi",
)
_add(
    _CELLS,
    """
%%mcp_tool bill(hours=1)
print("hours", hours)
hours * hourly_rate
""".strip(),
    {"hours": "2"},
    None,
    sentence=r"hourly_rate.*(assigned|bound|set) again",
    after="hourly_rate = 'thirty'",
)
_add(
    _CELLS,
    """
%%mcp_tool units_plot()
sales.groupby("region").units.sum().plot(kind="barh")
plt.show()
sales.units.sum()
""".strip(),
    {},
    "120",
    pictures=1,
)

_LIBRARY = "functions of libraries"
_add(
    _LIBRARY,
    "from pandas import read_csv\n%mcp_tool read_csv",
    {"filepath_or_buffer": "cities.csv"},
    "['Oslo', 709000]",
    tool="read_csv",
)
_add(
    _LIBRARY,
    """
def summarise(frame, column):
    return frame[column].sum()

sales_total = functools.partial(summarise, sales)
%mcp_tool sales_total
""",
    {"column": "units"},
    "120",
    tool="sales_total",
)
_add(
    _LIBRARY,
    "from statistics import median\n%mcp_tool median",
    {"data": [1, 5, 9]},
    "5",
    tool="median",
)
