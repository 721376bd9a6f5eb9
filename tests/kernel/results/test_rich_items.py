"""Which collections are shown item by item."""

from pathlib import Path

from mcp_notebook.kernel.results.files.returned_files import MAX_FILES
from mcp_notebook.kernel.results.value_renderer import RichItems


class Rich:
    pass


def items(collection, depth=0):
    return RichItems(
        collection,
        depth,
        is_rich=lambda item: isinstance(item, Rich),
    )


def test_one_rich_item_is_enough():
    assert items([1, Rich()]).are_present()
    assert items({"a": Rich()}).are_present()
    assert not items([1, "text", None, {}]).are_present()
    assert not items({1, 2}).are_present()


def test_a_collection_within_the_collection_counts_but_none_below():
    assert items([[Rich()]]).are_present()
    assert not items([[[Rich()]]]).are_present()
    assert not items([[Rich()]], depth=1).are_present()


def test_only_the_first_items_of_a_collection_within_are_looked_at():
    assert not items([[1] * 8 + [Rich()]]).are_present()


def test_a_few_paths_are_files_and_many_are_a_listing():
    paths = [Path(str(number)) for number in range(MAX_FILES + 1)]
    assert items(paths[:-1]).include(paths[0])
    assert not items(paths).include(paths[0])
    assert not items(paths[:1], depth=1).include(paths[0])
