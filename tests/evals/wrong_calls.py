"""Calls with a typical mistake of a model, and the calls that were meant.

The mistakes are those that models make with schemas they have read: another type, form or case, a
synonym, a parameter that does not exist, one that is missing, JSON within a text.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WrongCall:
    """A call with a mistake."""

    kind: str
    tool: str
    sent: dict[str, Any]
    meant: dict[str, Any]
    """The arguments that would have been right."""


_BERN, _ROME = {"lat": 46.9, "lon": 7.4}, {"lat": 41.9, "lon": 12.5}
_GRID = {"depth": [2, 4], "rate": [0.1], "split": {"test_share": 0.3, "shuffle": True}}

_ROWS: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "number as text": [
        ("monthly_revenue", {"year": "2015"}, {"year": 2015}),
        ("rain_by_month", {"year": "2013"}, {"year": 2013}),
        ("predict_price", {"area": "85.5", "rooms": "three"}, {"area": 85.5, "rooms": 3}),
        ("tax_due", {"income": "50,000"}, {"income": 50000.0}),
        ("loan_schedule", {"principal": 1e5, "rate": "3%", "years": 20},
         {"principal": 1e5, "rate": 0.03, "years": 20}),
        ("sunshine_hours", {"month": "July"}, {"month": 7}),
        ("cluster_customers", {"k": 4.5}, {"k": 4}),
    ],
    "text in another form": [
        ("plot_temperature", {"start": "01.02.2015", "end": "2015-03-01"},
         {"start": "2015-02-01", "end": "2015-03-01"}),
        ("plot_temperature", {"start": "2015-02-01", "end": "2015-02-30"},
         {"start": "2015-02-01", "end": "2015-02-28"}),
        ("churn_rate", {"quarter": "Q3 2024"}, {"quarter": "2024-Q3"}),
        ("cash_flow", {"quarter": "2024-Q5"}, {"quarter": "2024-Q4"}),
        ("track_shipment", {"number": "CH 1234 5678"}, {"number": "CH12345678"}),
        ("currency_convert", {"amount": "12 EUR", "source": "EUR", "target": "USD"},
         {"amount": "12", "source": "EUR", "target": "USD"}),
    ],
    "choice in other words": [
        ("top_customers", {"region": "eu"}, {"region": "EU"}),
        ("top_customers", {"region": "Europe"}, {"region": "EU"}),
        ("compare_regions", {"first": "USA", "second": "EU"}, {"first": "US", "second": "EU"}),
        ("storm_days", {"station": "Harbour"}, {"station": "harbor"}),
        ("carrier_cost", {"weight": 2.0, "zone": "ABROAD"}, {"weight": 2.0, "zone": "abroad"}),
        ("currency_convert", {"amount": "5", "source": "€", "target": "CHF"},
         {"amount": "5", "source": "EUR", "target": "CHF"}),
        ("confusion_matrix", {"model": "random forest"}, {"model": "forest", "normalize": False}),
    ],
    "out of bounds": [
        ("top_customers", {"region": "EU", "n": 500}, {"region": "EU", "n": 100}),
        ("hottest_day", {"year": 1998}, {"year": 2010}),
        ("loan_schedule", {"principal": 1e5, "rate": 3, "years": 20},
         {"principal": 1e5, "rate": 0.03, "years": 20}),
        ("shortest_route", {"start": _BERN, "goal": {"lat": 412, "lon": 12.5}},
         {"start": _BERN, "goal": _ROME}),
    ],
    "object in another form": [
        ("shortest_route", {"start": '{"lat": 46.9, "lon": 7.4}', "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
        ("shortest_route", {"start": [46.9, 7.4], "goal": _ROME}, {"start": _BERN, "goal": _ROME}),
        ("shortest_route", {"start": "Bern", "goal": _ROME}, {"start": _BERN, "goal": _ROME}),
        ("tune_parameters", {"model": "forest", "rounds": 3, "grid": '{"depth": [2, 4], "rate":'},
         {"model": "forest", "rounds": 3, "grid": _GRID}),
        ("tune_parameters", {"model": "forest", "rounds": 3, "grid": _GRID | {"depth": 4}},
         {"model": "forest", "rounds": 3, "grid": _GRID | {"depth": [4]}}),
    ],
    "unknown parameter": [
        ("top_customers", {"region": "EU", "limit": 5}, {"region": "EU", "n": 5}),
        ("stock_level", {"SKU": "X1", "warehouse": "A"}, {"sku": "X1", "warehouse": "A"}),
        ("shortest_route", {"start": {"latitude": 46.9, "longitude": 7.4}, "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
    ],
    "missing parameter": [
        ("top_customers", {}, {"region": "EU", "n": 10}),
        ("shortest_route", {"start": {"lat": 46.9}, "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
    ],
    "null for a default": [
        ("overdue_invoices", {"days": None}, {"days": 30}),
    ],
}  # fmt: skip
WRONG_CALLS = [WrongCall(kind, *row) for kind, rows in _ROWS.items() for row in rows]
