"""What clients can list and read, tools and resources, and the news that a list has changed.

Runs on the bridge's event loop. Which kernels there are is the business of `kernels`.
"""
