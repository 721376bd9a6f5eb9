"""Results as tools of notebooks return them, and questions that models ask of each.

Plain code, so that other versions and other servers can be measured with the same values. A result
of a library that is not installed is left out, with its questions.
"""

import datetime as dt
import math
import random
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

Make = Callable[[], Any]
_MADE: dict[str, tuple[tuple[str, ...], Make]] = {}


def _result(*libraries: str) -> Callable[[Make], Make]:
    """Add a function's value to the pool, if these libraries are installed."""

    def add(make: Make) -> Make:
        _MADE[make.__name__] = (libraries, make)
        return make

    return add


def make_results() -> dict[str, Any]:
    """Return the values by name."""
    return {
        name: make() for name, (libraries, make) in _MADE.items() if all(map(find_spec, libraries))
    }


NAMES = _MADE.keys()

# -- tables of pandas ------------------------------------------------------------------------------


def _make_orders(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": np.arange(1_000, 1_000 + rows),
            "day": pd.date_range("2023-01-05", periods=rows, freq="D"),
            "region": rng.choice(["EU", "US", "APAC"], rows, p=[0.5, 0.3, 0.2]),
            "customer": [f"Customer {n}" for n in rng.integers(0, 250, rows)],
            "quantity": rng.integers(1, 9, rows),
            "price": (rng.gamma(2, 40, rows) + 3).round(2),
            "discount": rng.choice([0.0, 0.05, 0.1, np.nan], rows),
            "paid": rng.random(rows) > 0.2,
        }
    )
    frame.loc[frame.index[min(700, rows - 1)], "price"] = 1999.99
    return frame


@_result()
def orders() -> Any:
    return _make_orders(1_000)


@_result()
def first_orders() -> Any:
    return _make_orders(1_000).head()


@_result()
def many_orders() -> Any:
    return _make_orders(100_000)[["id", "region", "quantity", "price"]]


@_result()
def weather() -> Any:
    rng = np.random.default_rng(2)
    days = pd.date_range("2024-01-01", "2024-12-31", name="date")
    turn = np.cos((np.arange(len(days)) - 200) / 366 * 2 * math.pi)
    frame = pd.DataFrame(
        {
            "temperature": (11 + 9 * turn + rng.normal(0, 2, len(days))).round(1),
            "rain": rng.gamma(0.4, 5, len(days)).round(1),
            "wind": rng.normal(4, 1.2, len(days)).round(2),
        },
        index=days,
    )
    frame.loc["2024-05-10":"2024-05-14", "wind"] = np.nan
    frame.loc["2024-07-19", "temperature"] = 38.7
    return frame


@_result()
def pivot() -> Any:
    orders = _make_orders(700)
    return orders.pivot_table("price", orders.day.dt.month, "region", "sum").round(2)


@_result()
def correlations() -> Any:
    rng = np.random.default_rng(3)
    base = rng.normal(size=(300, 1))
    noise = rng.normal(size=(300, 10))
    frame = pd.DataFrame(base * np.linspace(0, 2, 10) + noise, columns=[f"x{n}" for n in range(10)])
    return frame.corr()


@_result()
def wide() -> Any:
    rng = np.random.default_rng(4)
    return pd.DataFrame(rng.normal(size=(30, 100)), columns=[f"gene{n}" for n in range(100)])


@_result()
def residuals() -> Any:
    return pd.Series(np.random.default_rng(6).normal(size=1_000), name="residual")


@_result()
def comments() -> Any:
    words = [
        "late",
        "early",
        "broken",
        "perfect",
        "again",
        "never",
        "soon",
        "box",
        "shoe",
        "color",
        "wrong",
        "size",
        "return",
    ]
    pick = random.Random(7)
    texts = [" ".join(pick.choices(words, k=18)) for _ in range(12)]
    return pd.DataFrame({"stars": [pick.randint(1, 5) for _ in texts], "comment": texts})


@_result()
def sensors() -> Any:
    rng = np.random.default_rng(8)
    times = pd.date_range("2024-03-01 08:00", periods=500, freq="10min", tz="Europe/Berlin")
    return pd.DataFrame(
        {
            "at": times,
            "sensor": pd.Categorical(rng.choice(["north", "south", "roof"], 500)),
            "value": rng.normal(20, 3, 500),
            "status": pd.array(rng.choice([0, 1], 500), dtype="Int64"),
        }
    )


@_result()
def nothing_found() -> Any:
    return _make_orders(10).iloc[:0]


@_result()
def employees() -> Any:
    pick = random.Random(9)
    names = ["Ada", "Ben", "Cleo", "Dev", "Eva", "Finn", "Gia", "Hugo"]
    return pd.DataFrame(
        {
            "name": [f"{pick.choice(names)} {n}" for n in range(45)],
            "team": [pick.choice(["ops", "dev", "hr"]) for _ in range(45)],
            "salary": [pick.randrange(40_000, 90_000, 500) for _ in range(45)],
            "since": [dt.date(2015 + n % 9, 1 + n % 12, 1) for n in range(45)],
            "remote": [n % 3 == 0 for n in range(45)],
        }
    )


# -- tables of polars and Arrow --------------------------------------------------------------------


@_result("polars", "pyarrow")
def trips() -> Any:
    import polars as pl

    rng = np.random.default_rng(10)
    minutes = rng.gamma(3, 5, 2_000).round(1)
    return pl.DataFrame(
        {
            "started": pd.date_range("2024-06-01", periods=2_000, freq="7min").to_numpy(),
            "minutes": minutes,
            "tip": [None if n % 10 == 0 else float(n % 7) for n in range(2_000)],
            "zone": [f"Zone {n % 40}" for n in range(2_000)],
        }
    )


@_result("polars")
def waits() -> Any:
    import polars as pl

    return pl.Series("wait", np.random.default_rng(11).exponential(4, 700).round(3))


@_result("polars")
def nested_columns() -> Any:
    import polars as pl

    return pl.DataFrame({"id": range(70), "tags": [["x"] * (n % 3) for n in range(70)]})


@_result("pyarrow")
def arrow_log() -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(12)
    levels = rng.choice(["info", "warning", "error"], 800, p=[0.8, 0.15, 0.05])
    return pa.table({"line": range(800), "level": levels, "ms": rng.integers(1, 900, 800)})


# -- arrays ----------------------------------------------------------------------------------------


@_result()
def embedding() -> Any:
    return np.random.default_rng(13).normal(size=(500, 50))


@_result()
def confusion() -> Any:
    return np.array([[50, 3, 1], [4, 45, 2], [0, 6, 39]])


@_result()
def image_stack() -> Any:
    return np.random.default_rng(15).integers(0, 256, (3, 40, 60)).astype("u1")


@_result()
def mask() -> Any:
    return np.add.outer(np.arange(60), np.arange(60)) % 4 == 0


@_result()
def points() -> Any:
    values = np.zeros(200, dtype=[("x", "f8"), ("y", "f8"), ("label", "U4")])
    values["x"], values["y"] = np.arange(200) / 4, np.arange(200) ** 2
    values["label"] = np.where(np.arange(200) % 2, "odd", "even")
    return values


# -- records and nested data -----------------------------------------------------------------------


def _make_rows(count: int) -> list[dict[str, Any]]:
    pick = random.Random(17)
    return [
        {
            "sku": f"SKU-{n:04}",
            "stock": pick.randrange(0, 500),
            "price": round(pick.uniform(1, 90), 2),
            "warehouse": pick.choice(["Ghent", "Oslo", "Porto"]),
            "updated": dt.date(2024, 1 + n % 12, 3),
        }
        for n in range(count)
    ]


@_result()
def stock() -> Any:
    return _make_rows(400)


@_result()
def customers_of_database() -> Any:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("create table customer (id integer, name text, city text)")
        cities = ["Bergen", "Turku", None]
        rows = [(n, f"Customer {n}", cities[n % 3]) for n in range(75)]
        connection.executemany("insert into customer values (?, ?, ?)", rows)
        return connection.execute("select * from customer").fetchall()


@_result()
def config() -> Any:
    return {
        "model": {"name": "gbm", "depth": 6, "rate": 0.05, "seed": 42},
        "features": ["age", "income", "region", "tenure"],
        "split": {"train": 0.8, "test": 0.2},
        "early_stopping": True,
        "notes": None,
    }


@_result()
def prices_by_sku() -> Any:
    return {row["sku"]: row["price"] for row in _make_rows(500)}


@_result()
def loss_history() -> Any:
    return {"epochs": 400, "loss": [2.5 / (1 + n / 9) for n in range(400)], "best_epoch": 399}


@_result()
def page_of_orders() -> Any:
    return {
        "total": 812,
        "page": 1,
        "orders": [{"id": n, "status": "open" if n % 4 else "shipped"} for n in range(1, 301)],
    }


@_result()
def geojson() -> Any:
    ring = [
        [round(13.4 + math.cos(n / 50) / 9, 6), round(52.5 + math.sin(n / 50) / 9, 6)]
        for n in range(315)
    ]
    return {
        "type": "Feature",
        "properties": {"name": "Mitte"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


# -- others ----------------------------------------------------------------------------------------


@_result("shapely")
def circle() -> Any:
    import shapely

    return shapely.Point(13.4, 52.5).buffer(2, quad_segs=160)


@_result("networkx")
def network() -> Any:
    import networkx as nx

    return nx.karate_club_graph()


@_result("statsmodels")
def fit() -> Any:
    import statsmodels.api as sm

    x = np.arange(40.0)
    return sm.OLS(2 * x + 3 * np.sin(x), sm.add_constant(x)).fit()


@_result("sklearn")
def estimator() -> Any:
    from sklearn.linear_model import LinearRegression

    x = np.arange(40.0)
    return LinearRegression().fit(np.column_stack([x, x**2]), 2 * x - 0.5 * x**2 + 7)


@_result("scipy")
def links_of_pages() -> Any:
    from scipy import sparse

    return sparse.csr_array(([3, 1, 2], ([0, 1, 4], [2, 0, 3])), shape=(5, 5))


@_result("duckdb")
def sales_by_day() -> Any:
    import duckdb

    return duckdb.sql("select i as day, 7 * i % 50 as sold from range(300) days(i)")


@_result("sqlalchemy")
def people_of_database() -> Any:
    import sqlalchemy as sa

    connection = sa.create_engine("sqlite://").connect()
    return connection.execute(sa.text("select 'Ann' as name, 41 as age union select 'Bo', 39"))


# -- questions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """What a model asks next, and what an answer's text says if it has the answer."""

    result: str
    text: str
    patterns: tuple[str, ...]
    """Regular expressions; one of them matches a text with the answer. In each form of a table, a
    number stands between other characters than digits."""

    def is_answered(self, text: str) -> bool:
        """Return whether a text has the answer."""
        return any(re.search(pattern, text, re.MULTILINE | re.DOTALL) for pattern in self.patterns)


def _number(text: str) -> str:
    """Return a pattern of a number, not of a part of another one."""
    return rf"(?<![\d.]){text}(?!\d|\.\d*[1-9])"


_QUESTIONS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "orders": (
        ("How many rows?", r"1,?000 rows"),
        ("Which column has gaps?", r"discount\S* \w+: \d+ missing", r"discount.*(,,|\| *\|)"),
        ("From when?", r"2023-01-05"),
        ("To when?", r"2025-09-30"),
        ("What was the highest price?", _number("1,?999.99")),
        ("Which regions are there?", r"(?s)(?=.*EU)(?=.*US)(?=.*APAC)"),
        ("How many regions are there?", r"region \w+: 3 distinct"),
        ("Which region has the most orders?", r"distinct, EU \("),
        ("How many customers?", r"customer \w+: \d+ distinct"),
        ("What does an item cost on average?", r"price float64: .* mean \d"),
        ("How many are unpaid?", r"paid bool: .*False \(\d+\)"),
        ("Are the ids unique?", r"id int64: .*all distinct"),
    ),
    "first_orders": (
        ("How many rows?", r"5 rows", r"^4 "),
        ("What are the columns?", r"(?s)customer.*quantity.*price.*discount.*paid"),
        ("The id of the third?", _number("1002")),
    ),
    "many_orders": (
        ("How many rows?", r"100,?000 rows"),
        ("The lowest quantity?", r"quantity int64: 1 to"),
        ("The highest quantity?", r"quantity int64: 1 to 8"),
        ("What type is price?", r"price float64"),
    ),
    "weather": (
        ("Which column has gaps?", r"wind float64: 5 missing"),
        ("From when to when?", r"(?s)2024-01-01.*2024-12-31"),
        ("The highest temperature?", _number("38.7")),
        ("How many days?", r"366 rows"),
        ("The average rain?", r"rain float64: .*mean"),
        ("Which measures are there?", r"(?s)temperature.*rain.*wind"),
    ),
    "pivot": (
        ("Which regions are columns?", r"(?s)APAC.*EU.*US"),
        ("Is December there?", r"^\|? ?12\b"),
    ),
    "correlations": (
        ("How many variables?", r"10 rows x 10 columns", r"(?s)x0.*x9"),
        ("Is the diagonal one?", _number(r"1\.0+")),
    ),
    "wide": (
        ("How many columns?", r"100 columns"),
        ("How many rows?", r"30 rows"),
        ("What is the last column?", r"gene99"),
        ("The range of gene0?", r"gene0 float64: -?\d\S* to \d"),
    ),
    "residuals": (
        ("How many?", r"1,?000 rows"),
        ("The mean?", r"mean -?0\.0"),
        ("The largest?", r"float64: \S+ to \d"),
        ("Are any missing?", r"residual float64: -"),
    ),
    "comments": (
        ("What does the last one say?", r"(?s)(\w+ ){17}\w+\W*$", r"(?:\w+ ){17}\w+"),
        ("How many comments?", r"12 rows", r"^11 "),
    ),
    "sensors": (
        ("Which sensors are there?", r"(?s)(?=.*north)(?=.*roof)(?=.*south)"),
        ("In which time zone?", r"Europe/Berlin", r"\+01:00"),
        ("When does it end?", r"2024-03-04 19:10"),
        ("Which sensor has the most values?", r"distinct, (north|south|roof) \(\d+\)"),
        ("The average value?", r"value float64: .*mean \d"),
    ),
    "nothing_found": (
        ("Is anything found?", r"0 rows", r"Empty DataFrame"),
        ("What are the columns?", r"(?s)customer.*quantity"),
    ),
    "employees": (
        ("How many employees?", r"45 rows"),
        ("How much does the fifth earn?", r"^\|? ?\w+ 4\b.*\d\d[50]00"),
        ("Who is the last one?", r"\w+ 44\b"),
        ("Since when is the 20th there?", r"\w+ 19\b.*2016-08-01"),
        ("Which teams are there?", r"(?s)(?=.*ops)(?=.*dev)(?=.*\bhr\b)"),
    ),
    "trips": (
        ("How many trips?", r"2,?000 rows", r"shape: \(2_000"),
        ("Which column has gaps?", r"tip Float64: 200 missing", r",,Zone", r"null"),
        ("The last start?", r"2024-06-10 17:13"),
        ("How many zones?", r"zone String: 40 distinct"),
        ("How long on average?", r"minutes Float64: .*mean 1[45]"),
    ),
    "waits": (
        ("How many?", r"700 rows", r"\(700,\)"),
        ("The longest?", r"Float64: \S+ to \d"),
        ("The mean?", r"mean \d"),
    ),
    "nested_columns": (
        ("What is in tags?", r"List\(String\)", r"list\[str\]"),
        ("How many rows?", r"70 rows", r"\(70,"),
    ),
    "arrow_log": (
        ("How many errors?", r"error \(\d+\)"),
        ("The slowest?", r"ms int64: 1 to \d+"),
        ("How many lines?", r"800 rows"),
        ("Which levels are there?", r"(?s)(?=.*info)(?=.*warning)(?=.*error)"),
    ),
    "embedding": (
        ("What shape?", r"\(500, 50\)"),
        ("What type?", r"float64"),
        ("The largest?", r"-\d\S+ to \d\.\d+"),
        ("Is anything NaN?", r"float64: -\d\S* to"),
    ),
    "confusion": (("How many of class 3 are right?", _number("39")),),
    "image_stack": (
        ("What shape?", r"\(3, 40, 60\)"),
        ("What type?", r"uint8"),
        ("Which range?", r"0 to 255"),
    ),
    "mask": (
        ("How many are set?", r"True \(900\)"),
        ("What shape?", r"\(60, 60\)"),
    ),
    "points": (
        ("Which fields?", r"(?s)x.*y.*label"),
        ("How many points?", r"200 rows"),
        ("The largest y?", _number(r"39,?601\.?0?")),
    ),
    "stock": (
        ("How many articles?", r"400 rows"),
        ("Which warehouses are there?", r"(?s)(?=.*Ghent)(?=.*Oslo)(?=.*Porto)"),
        ("The dearest?", r"price float: \S+ to \d"),
        ("How many at each warehouse?", r"Oslo \(\d+\)"),
        ("The last SKU?", r"SKU-0399"),
    ),
    "customers_of_database": (
        ("How many customers?", r"75 rows"),
        ("Which column has gaps?", r"city \w[\w ]*: 25 missing", r",$", r"null"),
        ("Which cities are there?", r"(?s)(?=.*Bergen)(?=.*Turku)"),
    ),
    "config": (
        ("How deep?", r"\"depth\":\s*6"),
        ("Which features?", r"age.*income.*region.*tenure"),
    ),
    "prices_by_sku": (
        ("How many prices?", r"of 500 items"),
        ("The highest price?", r"all: \d\S* to 89\.\d+"),
        ("The first price?", r"SKU-0000\W+\d"),
    ),
    "loss_history": (
        ("The best epoch?", r"best_epoch\W+399"),
        ("The lowest loss?", r"0\.0551\d*"),
        ("How many epochs?", r"epochs\W+400"),
    ),
    "page_of_orders": (
        ("How many in all?", r"total\W+812"),
        ("What states are there?", r"(?s)open.*shipped|shipped.*open"),
        ("How many are shipped?", r"shipped \(75\)"),
    ),
    "geojson": (
        ("Its name?", r"Mitte"),
        ("Its type?", r"Polygon"),
        ("How many points?", r"of 315 items"),
    ),
    "circle": (
        ("What is it?", r"(?i)polygon"),
        ("Its bounds?", r"bounds 11\.4, 50\.5, 15\.4, 54\.5"),
        ("Its area?", r"area 12\.5"),
    ),
    "network": (
        ("How many nodes?", r"34 nodes"),
        ("How many edges?", r"78 (edges|rows)"),
        ("Which attributes do edges have?", r"weight"),
    ),
    "fit": (
        ("How well does it fit?", r"R-squared: +0\.99"),
        ("The slope?", r"x1 +1\.99"),
    ),
    "estimator": (
        ("Its coefficients?", r"coef_\W+2\.0\d*, ?-0\.5", r"coef_.*-0\.(5|49)"),
        ("Its intercept?", r"intercept_\W+(7\.0|6\.99)"),
    ),
    "links_of_pages": (
        ("How many links?", r"3 stored"),
        ("From which page to which?", r"\(4, 3\)\s+2"),
    ),
    "sales_by_day": (
        ("How many days?", r"300 rows"),
        ("The most on a day?", r"sold int: 0 to 49"),
    ),
    "people_of_database": (
        ("Who is there?", r"(?s)Ann.*Bo"),
        ("How old is Bo?", r"Bo\W+(age\W+)?39"),
    ),
}
QUESTIONS = tuple(
    Question(result, text, patterns)
    for result, questions in _QUESTIONS.items()
    for text, *patterns_ in questions
    for patterns in [tuple(patterns_)]
)
