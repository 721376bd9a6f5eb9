"""A hundred queries, as a model writes them, each with the tool of the pool that it needs.

They were written after the search's synonyms and before the search was measured with them, by the
same author: expect a lower figure with queries of others.
"""

QUERIES = tuple(
    (query.strip(), tool.strip())
    for query, _, tool in (
        line.partition("->")
        for line in """
who are our biggest clients -> top_customers
best customers in the EU -> top_customers
revenue per month in 2024 -> monthly_revenue
turnover by month -> monthly_revenue
compare sales of two regions -> compare_regions
how many customers did we lose -> churn_rate
customer churn -> churn_rate
impact of price reductions on units sold -> discount_effect
discount effect -> discount_effect
average order value -> average_basket
mean basket size per shop -> average_basket
how much did it rain each month -> rain_by_month
monthly rainfall -> rain_by_month
warmest day of the year -> hottest_day
maximum temperature -> hottest_day
graph of temperatures -> plot_temperature
draw daily temperature -> plot_temperature
days with strong wind -> storm_days
storms at a station -> storm_days
how sunny was it in July -> sunshine_hours
climate difference between stations -> compare_stations
how many people work in a department -> headcount
number of staff -> headcount
remaining holidays of an employee -> vacation_left
how much vacation does Ada have -> vacation_left
pay range for a level -> salary_band
minimum and maximum salary -> salary_band
who joined the company this month -> new_hires
recently hired people -> new_hires
extra hours worked by a team -> overtime_report
overtime -> overtime_report
who quit last year -> attrition
employees leaving the company -> attrition
fit a random forest -> train_classifier
training a classification model -> train_classifier
estimate the value of a house -> predict_price
house price prediction -> predict_price
which variables are most important -> feature_importance
importance of features -> feature_importance
classification errors per class -> confusion_matrix
confusion matrix of the model -> confusion_matrix
optimize hyperparameters -> tune_parameters
hyperparameter tuning -> tune_parameters
customer segmentation -> cluster_customers
k-means clusters -> cluster_customers
which columns have gaps -> missing_values
count nulls -> missing_values
duplicate rows -> find_duplicates
repeated records in a table -> find_duplicates
unusual values in a column -> detect_outliers
anomaly detection -> detect_outliers
data types of the columns -> column_types
descriptive statistics of a dataframe -> profile_table
overview of a table -> profile_table
check email addresses -> validate_emails
invalid emails -> validate_emails
unpaid bills -> overdue_invoices
invoices that are late -> overdue_invoices
cash in and out per quarter -> cash_flow
exchange dollars to euros -> currency_convert
convert currencies -> currency_convert
mortgage payments -> loan_schedule
repayment plan for a loan -> loan_schedule
actual versus planned costs -> budget_variance
are we over budget -> budget_variance
how much tax must I pay -> tax_due
income taxes -> tax_due
quickest path between two towns -> shortest_route
route planning -> shortest_route
inventory of an item -> stock_level
how many units are in the warehouse -> stock_level
delayed shipments -> late_deliveries
deliveries that came late -> late_deliveries
when should we replenish an article -> reorder_point
reorder an item -> reorder_point
shipping cost of a package -> carrier_cost
price to send a parcel -> carrier_cost
where is my package -> track_shipment
tracking number -> track_shipment
traffic on a page -> page_views
how many visitors does a page have -> page_views
where do users drop out before buying -> conversion_funnel
conversion of a campaign -> conversion_funnel
slowest requests -> slow_endpoints
latency of the API -> slow_endpoints
how many requests fail -> error_rate
server errors -> error_rate
is variant B better than A -> ab_test
A/B experiment significance -> ab_test
where does our traffic come from -> referrers
least squares fitting -> fit_curve
frequency analysis of a signal -> fourier_spectrum
how to dilute a solution -> dilution
molecular weight of a compound -> molar_mass
which columns are correlated -> correlation_table
is the difference of two means significant -> t_test
is this review positive -> sentiment
important terms of an article -> extract_keywords
translation into French -> translate_text
find related papers -> similar_documents
""".strip().splitlines()
    )
)
