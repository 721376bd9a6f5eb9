"""Queries, as a model writes them, each with the tool of the pool that it needs.

They were written by the author of the search, who then measured it with them: expect a lower figure
with queries of others.
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
""".strip().splitlines()
    )
)
