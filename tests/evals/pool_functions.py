"""Sixty functions of ten topics, as authors write them: the tools of the evals.

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


# -- hr --------------------------------------------------------------------------------------------


def headcount(department: Literal["sales", "research", "support", "finance"] | None = None):
    """Number of employees.

    Args:
        department: All if left out.
    """


def vacation_left(person: Annotated[str, Field(min_length=3)]):
    """Remaining days of leave.

    Args:
        person: Name of the employee.
    """


def salary_band(level: Literal["junior", "senior", "lead"]):
    """Lowest and highest pay of a level.

    Args:
        level: Career level.
    """


def new_hires(month: Month):
    """People who joined.

    Args:
        month: Number of the month.
    """


def overtime_report(team: list[str]):
    """Hours worked beyond the contract.

    Args:
        team: Names of the employees.
    """


def attrition(year: Year):
    """Employees who resigned.

    Args:
        year: Calendar year.
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


# -- quality ---------------------------------------------------------------------------------------


def missing_values(table: str):
    """Count empty cells in each column.

    Args:
        table: Name of the table.
    """


def find_duplicates(table: str, columns: list[str]):
    """Rows that occur more than once.

    Args:
        table: Name of the table.
        columns: Columns that have to be equal.
    """


def detect_outliers(column: str, limit: Annotated[float, Field(gt=0)] = 3.0):
    """Values far from the rest.

    Args:
        column: Column to look at.
        limit: Standard deviations.
    """


def column_types(table: str):
    """The dtype of each column.

    Args:
        table: Name of the table.
    """


def profile_table(table: str, sample: int | None = None):
    """Summary statistics of a data frame.

    Args:
        table: Name of the table.
        sample: Number of rows to look at; all if left out.
    """


def validate_emails(column: str):
    """Addresses with a wrong format.

    Args:
        column: Column of addresses.
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


# -- web -------------------------------------------------------------------------------------------


def page_views(path: str, since: dt.datetime | None = None):
    """Visits of a page.

    Args:
        path: Path of the page.
        since: From when on.
    """


def conversion_funnel(campaign: str):
    """Visitors who get from step to step until they buy.

    Args:
        campaign: Name of the campaign.
    """


def slow_endpoints(percentile: Literal[50, 90, 95, 99] = 95):
    """Requests with the longest response time.

    Args:
        percentile: Of the response time.
    """


def error_rate(service: Literal["api", "web", "worker"]):
    """Share of responses with status 5xx.

    Args:
        service: Service.
    """


def ab_test(variant: Literal["A", "B"], metric: Literal["clicks", "orders", "revenue"]):
    """Whether a variant is significantly better.

    Args:
        variant: Variant to compare with the other.
        metric: What to compare.
    """


def referrers(day: Day):
    """Sites that visitors come from.

    Args:
        day: Day.
    """


# -- lab -------------------------------------------------------------------------------------------


def fit_curve(x: list[float], y: list[float], kind: Literal["line", "parabola", "exponential"]):
    """Least-squares fit of a curve to measurements.

    Args:
        x: Where it was measured.
        y: What was measured.
        kind: Curve.
    """


def fourier_spectrum(signal: list[float]):
    """Frequencies in a time series.

    Args:
        signal: Values at equal distances.
    """


def dilution(stock: float, target: float, volume: Annotated[float, Field(gt=0)]):
    """How much solvent to add.

    Args:
        stock: Concentration in mol/l.
        target: Concentration wanted, in mol/l.
        volume: Milliliters wanted.
    """


def molar_mass(formula: Annotated[str, Field(pattern=r"^([A-Z][a-z]?\d*)+$")]):
    """Weight of a mole of a compound.

    Args:
        formula: Such as C6H12O6.
    """


def correlation_table(columns: Annotated[list[str], Field(min_length=2)]):
    """Pearson correlation of pairs of columns.

    Args:
        columns: Columns to compare.
    """


def t_test(first: list[float], second: list[float]):
    """Whether two means differ.

    Args:
        first: A sample.
        second: Another sample.
    """


# -- texts -----------------------------------------------------------------------------------------


def summarize_document(path: str):
    """The main points of a document.

    Args:
        path: Path of the file.
    """


def sentiment(text: str):
    """Whether a text is positive or negative.

    Args:
        text: Text to judge.
    """


def extract_keywords(text: str, n: Annotated[int, Field(ge=1, le=20)] = 5):
    """The most telling terms.

    Args:
        text: Text to read.
        n: How many terms.
    """


def translate_text(text: str, language: Literal["de", "en", "es", "fr"]):
    """Translate into another language.

    Args:
        text: Text to translate.
        language: Language to translate to.
    """


def count_words(path: str, weights: dict[str, float] | None = None):
    """Words and characters of a file.

    Args:
        path: Path of the file.
        weights: How much words count, by word.
    """


def similar_documents(text: str, n: Annotated[int, Field(ge=1, le=20)] = 5):
    """Documents that are about the same.

    Args:
        text: Text to compare with.
        n: How many documents.
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
    headcount,
    vacation_left,
    salary_band,
    new_hires,
    overtime_report,
    attrition,
    train_classifier,
    predict_price,
    feature_importance,
    confusion_matrix,
    tune_parameters,
    cluster_customers,
    missing_values,
    find_duplicates,
    detect_outliers,
    column_types,
    profile_table,
    validate_emails,
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
    page_views,
    conversion_funnel,
    slow_endpoints,
    error_rate,
    ab_test,
    referrers,
    fit_curve,
    fourier_spectrum,
    dilution,
    molar_mass,
    correlation_table,
    t_test,
    summarize_document,
    sentiment,
    extract_keywords,
    translate_text,
    count_words,
    similar_documents,
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
