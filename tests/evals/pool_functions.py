"""Functions of five topics, as authors write them: the tools of the evals.

Needs nothing but pydantic, so that other servers offer the same functions. Their bodies are empty:
the evals are about what a model reads and what reaches a function. `echo` makes a function return
that.
"""

import datetime as dt
import functools
import inspect
import json
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

Region = Literal["EU", "US", "APAC"]
Quarter = Annotated[str, Field(pattern=r"^\d{4}-Q[1-4]$")]
Month = Annotated[int, Field(ge=1, le=12)]
Year = Annotated[int, Field(ge=2010, le=2025)]
Day = dt.date


class Zone(Enum):
    """How far a parcel goes."""

    LOCAL = "local"
    NATIONAL = "national"
    ABROAD = "abroad"


class Place(BaseModel):
    """A point on the map."""

    lat: Annotated[float, Field(ge=-90, le=90)]
    lon: Annotated[float, Field(ge=-180, le=180)]


class Split(BaseModel):
    """How rows are split for training."""

    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    shuffle: bool = True


class Parameters(BaseModel):
    """Hyperparameters to try."""

    depth: list[int]
    rate: list[float]
    split: Split = Split()


# -- sales -----------------------------------------------------------------------------------------


def top_customers(region: Region, n: Annotated[int, Field(ge=1, le=100)] = 10):
    """Customers with the highest revenue.

    Args:
        region: Sales region.
        n: How many customers.
    """


def monthly_revenue(year: Year):
    """Revenue by month.

    Args:
        year: Calendar year.
    """


def compare_regions(first: Region, second: Region):
    """Difference in sales between two regions.

    Args:
        first: The region that is subtracted from.
        second: The region that is subtracted.
    """


def churn_rate(quarter: Quarter):
    """Share of customers who stopped buying.

    Args:
        quarter: Such as 2024-Q3.
    """


def discount_effect(product: str):
    """How discounts changed the number of units sold.

    Args:
        product: Article number.
    """


def average_basket(store: int | None = None):
    """Mean value of an order.

    Args:
        store: Number of the store; all if left out.
    """


# -- weather ---------------------------------------------------------------------------------------


def rain_by_month(year: Literal[2012, 2013, 2014, 2015]):
    """Precipitation in millimetres, month by month.

    Args:
        year: Calendar year.
    """


def hottest_day(year: Year):
    """The day with the highest temperature.

    Args:
        year: Calendar year.
    """


def plot_temperature(start: Day, end: Day):
    """Line chart of daily temperatures.

    Args:
        start: First day.
        end: Last day.
    """


def storm_days(station: Literal["north", "south", "harbor"]):
    """Days with wind above 75 km/h.

    Args:
        station: Weather station.
    """


def sunshine_hours(month: Month):
    """Hours of sun.

    Args:
        month: Number of the month.
    """


def compare_stations(first: str, second: str):
    """Difference in climate between two stations.

    Args:
        first: Weather station.
        second: Another one.
    """


# -- models ----------------------------------------------------------------------------------------


def train_classifier(
    features: Annotated[list[str], Field(min_length=1)], target: str, split: Split | None = None
):
    """Fit a random forest.

    Args:
        features: Columns to learn from.
        target: Column to predict.
        split: How rows are split.
    """


def predict_price(area: Annotated[float, Field(gt=0)], rooms: Annotated[int, Field(ge=1)]):
    """Estimate what a house sells for.

    Args:
        area: Square metres.
        rooms: Number of rooms.
    """


def feature_importance(model: Literal["forest", "boosting", "linear"]):
    """Which inputs matter most.

    Args:
        model: A trained model.
    """


def confusion_matrix(model: Literal["forest", "boosting", "linear"], normalize: bool = False):
    """Hits and errors of a classifier by class.

    Args:
        model: A trained model.
        normalize: Whether to show shares.
    """


def tune_parameters(model: str, rounds: Annotated[int, Field(ge=1, le=50)], grid: Parameters):
    """Search for better hyperparameters.

    Args:
        model: A trained model.
        rounds: How often to try.
        grid: What to try.
    """


def cluster_customers(k: Annotated[int, Field(ge=2, le=20)]):
    """Group buyers by behavior with k-means.

    Args:
        k: Number of groups.
    """


# -- finance ---------------------------------------------------------------------------------------


def overdue_invoices(days: Annotated[int, Field(ge=0)] = 30):
    """Invoices that are not paid in time.

    Args:
        days: Days after the due date.
    """


def cash_flow(quarter: Quarter):
    """Money in and out.

    Args:
        quarter: Such as 2024-Q3.
    """


def currency_convert(
    amount: Decimal, source: Literal["EUR", "USD", "CHF"], target: Literal["EUR", "USD", "CHF"]
):
    """Convert an amount at today's exchange rate.

    Args:
        amount: In the source currency.
        source: Currency to convert from.
        target: Currency to convert to.
    """


def loan_schedule(
    principal: Annotated[float, Field(gt=0)],
    rate: Annotated[float, Field(ge=0, le=1)],
    years: Annotated[int, Field(ge=1, le=40)],
):
    """Monthly payments of a mortgage.

    Args:
        principal: Amount borrowed.
        rate: Yearly interest as a fraction.
        years: Term.
    """


def budget_variance(department: Literal["sales", "research", "support", "finance"]):
    """Planned against actual expenses.

    Args:
        department: Department.
    """


def tax_due(income: Annotated[float, Field(ge=0)]):
    """Income tax to pay.

    Args:
        income: Yearly income.
    """


# -- logistics -------------------------------------------------------------------------------------


def shortest_route(start: Place, goal: Place):
    """Fastest way between two cities.

    Args:
        start: Where to start.
        goal: Where to go.
    """


def stock_level(sku: str, warehouse: Literal["A", "B", "C"]):
    """Units on hand.

    Args:
        sku: Article number.
        warehouse: Which one.
    """


def late_deliveries(carrier: Literal["post", "courier", "freight"], since: Day | None = None):
    """Shipments that arrived after the promised date.

    Args:
        carrier: Who delivers.
        since: First day; all if left out.
    """


def reorder_point(sku: str):
    """When to order more of an article.

    Args:
        sku: Article number.
    """


def carrier_cost(weight: Annotated[float, Field(gt=0, le=70)], zone: Zone):
    """Price of sending a parcel.

    Args:
        weight: Kilograms.
        zone: Destination.
    """


def track_shipment(number: Annotated[str, Field(pattern=r"^[A-Z]{2}\d{8}$")]):
    """Where a parcel is now.

    Args:
        number: Two letters and eight digits.
    """


FUNCTIONS: list[Callable[..., Any]] = [
    top_customers,
    monthly_revenue,
    compare_regions,
    churn_rate,
    discount_effect,
    average_basket,
    rain_by_month,
    hottest_day,
    plot_temperature,
    storm_days,
    sunshine_hours,
    compare_stations,
    train_classifier,
    predict_price,
    feature_importance,
    confusion_matrix,
    tune_parameters,
    cluster_customers,
    overdue_invoices,
    cash_flow,
    currency_convert,
    loan_schedule,
    budget_variance,
    tax_due,
    shortest_route,
    stock_level,
    late_deliveries,
    reorder_point,
    carrier_cost,
    track_shipment,
]


def echo(function: Callable[..., Any]) -> Callable[..., str]:
    """Return a function with the same signature that returns, as JSON, what it was called with."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def tell(*args: Any, **kwargs: Any) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return json.dumps(to_jsonable_python(bound.arguments))

    return tell
