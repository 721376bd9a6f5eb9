"""Sixty tools of ten notebooks, as authors describe them, to measure how well tools are found."""

from mcp_notebook.wire.messages import ToolInfo

_POOL = {
    "sales": """
        top_customers(region, n): Customers with the highest revenue.
        monthly_revenue(year): Revenue by month.
        compare_regions(first, second): Difference in sales between two regions.
        churn_rate(quarter): Share of customers who stopped buying.
        discount_effect(product): How discounts changed the number of units sold.
        average_basket(store): Mean value of an order.""",
    "weather": """
        rain_by_month(year): Precipitation in millimetres, month by month.
        hottest_day(year): The day with the highest temperature.
        plot_temperature(start, end): Line chart of daily temperatures.
        storm_days(station): Days with wind above 75 km/h.
        sunshine_hours(month): Hours of sun.
        compare_stations(first, second): Difference in climate between two stations.""",
    "hr": """
        headcount(department): Number of employees.
        vacation_left(person): Remaining days of leave.
        salary_band(level): Lowest and highest pay of a level.
        new_hires(month): People who joined.
        overtime_report(team): Hours worked beyond the contract.
        attrition(year): Employees who resigned.""",
    "models": """
        train_classifier(features, target): Fit a random forest.
        predict_price(area, rooms): Estimate what a house sells for.
        feature_importance(model): Which inputs matter most.
        confusion_matrix(model): Hits and errors of a classifier by class.
        tune_parameters(model, rounds): Search for better hyperparameters.
        cluster_customers(k): Group buyers by behavior with k-means.""",
    "quality": """
        missing_values(table): Count empty cells in each column.
        find_duplicates(table, columns): Rows that occur more than once.
        detect_outliers(column): Values far from the rest.
        column_types(table): The dtype of each column.
        profile_table(table): Summary statistics of a data frame.
        validate_emails(column): Addresses with a wrong format.""",
    "finance": """
        overdue_invoices(days): Invoices that are not paid in time.
        cash_flow(quarter): Money in and out.
        currency_convert(amount, source, target): Convert an amount at today's exchange rate.
        loan_schedule(principal, rate, years): Monthly payments of a mortgage.
        budget_variance(department): Planned against actual expenses.
        tax_due(income): Income tax to pay.""",
    "logistics": """
        shortest_route(start, goal): Fastest way between two cities.
        stock_level(sku, warehouse): Units on hand.
        late_deliveries(carrier): Shipments that arrived after the promised date.
        reorder_point(sku): When to order more of an article.
        carrier_cost(weight, zone): Price of sending a parcel.
        track_shipment(number): Where a parcel is now.""",
    "web": """
        page_views(path): Visits of a page.
        conversion_funnel(campaign): Visitors who get from step to step until they buy.
        slow_endpoints(percentile): Requests with the longest response time.
        error_rate(service): Share of responses with status 5xx.
        ab_test(variant, metric): Whether a variant is significantly better.
        referrers(day): Sites that visitors come from.""",
    "lab": """
        fit_curve(x, y, kind): Least-squares fit of a curve to measurements.
        fourier_spectrum(signal): Frequencies in a time series.
        dilution(stock, target, volume): How much solvent to add.
        molar_mass(formula): Weight of a mole of a compound.
        correlation_table(columns): Pearson correlation of pairs of columns.
        t_test(first, second): Whether two means differ.""",
    "texts": """
        summarize_document(path): The main points of a document.
        sentiment(text): Whether a text is positive or negative.
        extract_keywords(text, n): The most telling terms.
        translate_text(text, language): Translate into another language.
        count_words(path): Words and characters of a file.
        similar_documents(text, n): Documents that are about the same.""",
}
"""The tools by notebook, one a line."""


def list_tools() -> dict[str, list[ToolInfo]]:
    """Return the tools by notebook."""
    return {
        notebook: [_read(line) for line in lines.strip().splitlines()]
        for notebook, lines in _POOL.items()
    }


def _read(line: str) -> ToolInfo:
    signature, _, description = line.strip().partition(": ")
    name, _, parameters = signature.rstrip(")").partition("(")
    properties = {each.strip(): {"type": "string"} for each in parameters.split(",")}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return ToolInfo(name=name, description=description, input_schema=schema)
