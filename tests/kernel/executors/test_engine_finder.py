"""Which engine an executor has."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest

from mcp_notebook.kernel.executors import dask_engine
from mcp_notebook.kernel.executors.dask_engine import DaskEngine
from mcp_notebook.kernel.executors.engine_finder import EngineFinder
from mcp_notebook.kernel.executors.engines import Engine


def test_an_executor_of_python_has_the_common_engine():
    with ThreadPoolExecutor(1) as pool:
        assert type(EngineFinder().find(pool)) is Engine


def test_a_broken_pool_of_another_kind_is_not_replaced():
    class Pool(ProcessPoolExecutor):
        pass

    engine = EngineFinder().find(Pool(1))
    assert "can no longer be used" in str(engine.explain("mask", BrokenProcessPool("killed")))


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_a_client_of_dask_without_a_cluster_is_found_and_told_of():
    import distributed  # noqa: PLC0415

    client = distributed.Client.__new__(distributed.Client)
    client.status = "closed"
    assert dask_engine.find_client(client) == (client, {})
    engine = DaskEngine(client, {}, dask_engine.Inbox())
    with pytest.raises(ConnectionError):
        engine.check()
    text = str(engine.explain("sales", OSError("no route")))
    assert text.startswith(
        "The Dask cluster of 'sales' is gone: OSError: no route. The user has to"
    )
    assert dask_engine.find_client(SimpleNamespace()) is None
