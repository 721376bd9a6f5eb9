"""Which engine an executor has."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from mcp_notebook.kernel.executors import dask_engine
from mcp_notebook.kernel.executors.dask_engine import DaskEngine
from mcp_notebook.kernel.executors.engines import Engine
from mcp_notebook.kernel.executors.executor_call import EngineFinder


def test_an_executor_of_python_has_the_common_engine():
    with ThreadPoolExecutor(1) as pool:
        assert type(EngineFinder().find(pool)) is Engine


def test_that_calls_of_a_tool_are_large_is_told_once():
    finder = EngineFinder()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        assert finder.find(one).begin_warning("sales")
        assert not finder.find(other).begin_warning("sales")
        assert finder.find(one).begin_warning("orders")


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_a_client_of_dask_without_a_cluster_is_found_and_told_of():
    import distributed  # noqa: PLC0415

    client = distributed.Client.__new__(distributed.Client)
    client.status = "closed"
    assert dask_engine.find_client(client) == (client, {})
    engine = DaskEngine(client, {}, dask_engine.Inbox(), set())
    with pytest.raises(ConnectionError):
        engine.check()
    text = str(engine.explain("sales", OSError("no route")))
    assert text.startswith(
        "The Dask cluster of 'sales' is gone: OSError: no route. The user has to"
    )
    assert dask_engine.find_client(SimpleNamespace()) is None
