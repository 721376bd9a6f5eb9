import importlib
import sys
import threading

import pytest

from mcp_notebook.lean_imports import leave_out, postpone_names


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose `__init__` imports its large module, and another that it can do without."""
    files = {
        "shop/__init__.py": "from shop.large import sell\nfrom shop import large\nruns = 1\n",
        "shop/large.py": "def sell(): return 'sold'\n",
        "shop/small.py": "try:\n    import stock\nexcept ImportError:\n    stock = None\n",
        "shop/names/__init__.py": "def __getattr__(name):\n    return name.upper()\n",
        "shop/branch/__init__.py": "from shop.branch.cellar import depth\n",
        "shop/branch/cellar.py": "depth = 3\n",
        "shop/branch/attic.py": "height = 4\n",
        "stock.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in {"shop", "stock"}]:
        del sys.modules[name]


def _loaded():
    return {name for name in sys.modules if name.split(".")[0] in {"shop", "stock"}}


def test_a_module_that_is_left_out_is_not_found_and_not_missed(package):
    with leave_out("stock"):
        small = importlib.import_module("shop.small")
    assert small.stock is None
    assert importlib.import_module("stock").__name__ == "stock"


def test_a_module_that_is_loaded_is_not_left_out(package):
    stock = importlib.import_module("stock")
    with leave_out("stock"):
        assert importlib.import_module("shop.small").stock is stock
    assert sys.modules["stock"] is stock


def test_a_module_is_imported_without_what_its_package_imports(package):
    postpone_names("shop")
    postpone_names("shop.branch")
    assert importlib.import_module("shop.branch.attic").height == 4
    assert _loaded() == {"shop", "shop.branch", "shop.branch.attic"}


def test_names_of_the_package_are_there_on_access(package):
    postpone_names("shop")
    postpone_names("shop.branch")
    shop = importlib.import_module("shop")
    assert shop.branch.depth == 3
    assert "shop.large" not in sys.modules
    assert shop.sell() == "sold"
    assert sys.modules["shop"] is shop
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'buy'"):
        shop.buy  # noqa: B018


def test_names_that_a_package_makes_when_it_is_asked_are_there(package):
    postpone_names("shop")
    postpone_names("shop.names")
    assert importlib.import_module("shop.names").tea == "TEA"


def test_threads_that_ask_at_once_all_get_the_name(package):
    postpone_names("shop")
    shop = importlib.import_module("shop")
    together, sold = threading.Barrier(8), []

    def sell():
        together.wait()
        sold.append(shop.sell())

    threads = [threading.Thread(target=sell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sold == ["sold"] * 8


def test_a_package_that_is_loaded_stays_as_it_is(package):
    shop = importlib.import_module("shop")
    postpone_names("shop")
    assert sys.modules["shop"] is shop
    assert "__getattr__" not in vars(shop)
