"""Sixty calls with a typical mistake of a model, and the calls that were meant.

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
        ("slow_endpoints", {"percentile": "p99"}, {"percentile": 99}),
        ("sunshine_hours", {"month": "July"}, {"month": 7}),
        ("cluster_customers", {"k": 4.5}, {"k": 4}),
    ],
    "text in another form": [
        ("referrers", {"day": "2015-13-01"}, {"day": "2015-12-01"}),
        ("referrers", {"day": "last Monday"}, {"day": "2015-06-01"}),
        ("plot_temperature", {"start": "01.02.2015", "end": "2015-03-01"},
         {"start": "2015-02-01", "end": "2015-03-01"}),
        ("plot_temperature", {"start": "2015-02-01", "end": "2015-02-30"},
         {"start": "2015-02-01", "end": "2015-02-28"}),
        ("page_views", {"path": "/", "since": "yesterday"},
         {"path": "/", "since": "2015-06-01T00:00:00"}),
        ("churn_rate", {"quarter": "Q3 2024"}, {"quarter": "2024-Q3"}),
        ("cash_flow", {"quarter": "2024-Q5"}, {"quarter": "2024-Q4"}),
        ("track_shipment", {"number": "CH 1234 5678"}, {"number": "CH12345678"}),
        ("molar_mass", {"formula": "glucose"}, {"formula": "C6H12O6"}),
        ("vacation_left", {"person": ""}, {"person": "Ada"}),
        ("currency_convert", {"amount": "12 EUR", "source": "EUR", "target": "USD"},
         {"amount": "12", "source": "EUR", "target": "USD"}),
    ],
    "choice in other words": [
        ("top_customers", {"region": "eu"}, {"region": "EU"}),
        ("top_customers", {"region": "Europe"}, {"region": "EU"}),
        ("compare_regions", {"first": "USA", "second": "EU"}, {"first": "US", "second": "EU"}),
        ("storm_days", {"station": "Harbour"}, {"station": "harbor"}),
        ("headcount", {"department": "R&D"}, {"department": "research"}),
        ("salary_band", {"level": "Senior"}, {"level": "senior"}),
        ("carrier_cost", {"weight": 2.0, "zone": "ABROAD"}, {"weight": 2.0, "zone": "abroad"}),
        ("currency_convert", {"amount": "5", "source": "€", "target": "CHF"},
         {"amount": "5", "source": "EUR", "target": "CHF"}),
        ("translate_text", {"text": "Hello", "language": "German"},
         {"text": "Hello", "language": "de"}),
        ("error_rate", {"service": ""}, {"service": "api"}),
        ("confusion_matrix", {"model": "random forest"}, {"model": "forest", "normalize": False}),
        ("fit_curve", {"x": [1.0, 2.0], "y": [1.0, 4.0], "kind": "quadratic"},
         {"x": [1.0, 2.0], "y": [1.0, 4.0], "kind": "parabola"}),
    ],
    "out of bounds": [
        ("top_customers", {"region": "EU", "n": 500}, {"region": "EU", "n": 100}),
        ("extract_keywords", {"text": "a b", "n": 0}, {"text": "a b", "n": 1}),
        ("hottest_day", {"year": 1998}, {"year": 2010}),
        ("new_hires", {"month": 13}, {"month": 12}),
        ("loan_schedule", {"principal": 1e5, "rate": 3, "years": 20},
         {"principal": 1e5, "rate": 0.03, "years": 20}),
        ("correlation_table", {"columns": ["price"]}, {"columns": ["price", "area"]}),
        ("shortest_route", {"start": _BERN, "goal": {"lat": 412, "lon": 12.5}},
         {"start": _BERN, "goal": _ROME}),
    ],
    "list in another form": [
        ("find_duplicates", {"table": "orders", "columns": "sku,day"},
         {"table": "orders", "columns": ["sku", "day"]}),
        ("overtime_report", {"team": "Ada"}, {"team": ["Ada"]}),
        ("t_test", {"first": "1, 2, 3", "second": [2.0, 3.0]},
         {"first": [1.0, 2.0, 3.0], "second": [2.0, 3.0]}),
        ("fourier_spectrum", {"signal": {"0": 1.0, "1": 0.5}}, {"signal": [1.0, 0.5]}),
        ("fit_curve", {"x": [1.0, "two"], "y": [1.0, 4.0], "kind": "line"},
         {"x": [1.0, 2.0], "y": [1.0, 4.0], "kind": "line"}),
    ],
    "object in another form": [
        ("shortest_route", {"start": '{"lat": 46.9, "lon": 7.4}', "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
        ("shortest_route", {"start": [46.9, 7.4], "goal": _ROME}, {"start": _BERN, "goal": _ROME}),
        ("shortest_route", {"start": "Bern", "goal": _ROME}, {"start": _BERN, "goal": _ROME}),
        ("count_words", {"path": "a.txt", "weights": ["the", 0.5]},
         {"path": "a.txt", "weights": {"the": 0.5}}),
        ("tune_parameters", {"model": "forest", "rounds": 3, "grid": '{"depth": [2, 4], "rate":'},
         {"model": "forest", "rounds": 3, "grid": _GRID}),
        ("tune_parameters", {"model": "forest", "rounds": 3, "grid": _GRID | {"depth": 4}},
         {"model": "forest", "rounds": 3, "grid": _GRID | {"depth": [4]}}),
    ],
    "unknown parameter": [
        ("top_customers", {"region": "EU", "limit": 5}, {"region": "EU", "n": 5}),
        ("detect_outliers", {"column": "price", "limits": 2.0}, {"column": "price", "limit": 2.0}),
        ("stock_level", {"SKU": "X1", "warehouse": "A"}, {"sku": "X1", "warehouse": "A"}),
        ("sentiment", {"text": "Good", "language": "en"}, {"text": "Good"}),
        ("shortest_route", {"start": {"latitude": 46.9, "longitude": 7.4}, "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
    ],
    "missing parameter": [
        ("top_customers", {}, {"region": "EU", "n": 10}),
        ("ab_test", {"variant": "B"}, {"variant": "B", "metric": "orders"}),
        ("shortest_route", {"start": {"lat": 46.9}, "goal": _ROME},
         {"start": _BERN, "goal": _ROME}),
    ],
    "null for a default": [
        ("overdue_invoices", {"days": None}, {"days": 30}),
        ("similar_documents", {"text": "rain", "n": None}, {"text": "rain", "n": 5}),
        ("slow_endpoints", {"percentile": "null"}, {"percentile": 95}),
    ],
}  # fmt: skip
WRONG_CALLS = [WrongCall(kind, *row) for kind, rows in _ROWS.items() for row in rows]
