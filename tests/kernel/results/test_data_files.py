"""Tables and arrays in files, with the libraries that the notebook has loaded."""

import sys

import pytest
from sample_files import write_file

from mcp_notebook.content import Resource, ResourceLink
from mcp_notebook.kernel.results import data_files

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

SHORT = pd.DataFrame({"city": ["Rome", "Oslo"], "mm": [1.5, None]})
LONG = pd.DataFrame({"n": range(200), "s": [f"text {n}" for n in range(200)]})
WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.CSV": lambda frame, path: frame.to_csv(path, index=False, encoding="utf-8-sig"),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "semicolons.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "a.feather": lambda frame, path: frame.to_feather(path),
    "a.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


@pytest.fixture
def only(monkeypatch):
    """Return a function that leaves some libraries loaded of those that read tables."""

    def keep(*libraries):
        monkeypatch.setattr(data_files, "sys", Modules(libraries))

    return keep


class Modules:
    """``sys`` with some of the loaded libraries."""

    def __init__(self, libraries):
        self.modules = {name: sys.modules[name] for name in libraries}


def texts(blocks):
    return [block.text for block in blocks if not isinstance(block, ResourceLink)]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_a_table_is_shown_as_the_table(folder, convert, name):
    for frame in (SHORT, LONG):
        WRITERS[name](frame, folder / name)
        of_file, of_frame = convert(folder / name), convert(frame)
        assert texts(of_file) == texts(of_frame)
        links = [block.name for block in of_file if isinstance(block, ResourceLink)]
        if frame is LONG:
            assert links[:2] == ["table.csv", "table.parquet"]
        is_text = name.endswith(("csv", "CSV", "tsv", "jsonl"))
        assert (links[-1:] == [name]) is not is_text


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.feather", "a.jsonl"])
def test_polars_reads_what_pandas_would(folder, convert, only, name):
    WRITERS[name](SHORT, folder / name)
    only("polars")
    text, *_ = convert(folder / name)
    assert text.text.startswith("polars DataFrame: 2 rows x 2 columns; city String, mm Float64\n")
    assert text.text.endswith("Oslo,")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_text_in_any_encoding_is_read(folder, to_text, only, library, encoding):
    only(library)
    text = to_text(write_file(folder / "a.csv", "größe;n\nklein;1\n".encode(encoding)))
    assert text.endswith("größe,n\nklein,1")


def test_sheets_are_shown_one_by_one(folder, convert):
    with pd.ExcelWriter(folder / "a.xlsx") as writer:
        SHORT.to_excel(writer, sheet_name="rain", index=False)
        LONG.to_excel(writer, sheet_name="long", index=False)
    text = "\n".join(texts(convert(folder / "a.xlsx")))
    assert "rain:\n" in text
    assert "DataFrame: 2 rows x 2 columns" in text
    assert "DataFrame: 200 rows x 2 columns" in text


def test_an_array_is_shown_as_the_array(folder, convert):
    array = np.arange(6).reshape(2, 3)
    np.save(folder / "a.npy", array)
    text, link = convert(folder / "a.npy")
    assert text.text == "array of shape (2, 3), int64\n\n0,1,2\n3,4,5"
    assert link.name == "a.npy"
    np.savez(folder / "a.npz", x=array, y=np.ones(2))
    assert "0, 1, 2" in convert(folder / "a.npz")[0].text


def test_nothing_that_is_pickled_in_a_file_is_run(folder, convert):
    np.save(folder / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    resource, note = convert(folder / "a.npy")
    assert isinstance(resource, Resource)
    assert "numpy cannot read" in note.text
    assert "allow_pickle=False" in note.text


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.xlsx", "a.npy"])
def test_without_a_library_a_file_is_shown_as_any_other_with_a_hint(folder, convert, only, name):
    WRITERS.get(name, lambda _, path: np.save(path, np.ones(3)))(SHORT, folder / name)
    only()
    block, note = convert(folder / name)
    if name == "a.csv":
        assert block.text == "city,mm\nRome,1.5\nOslo,\n"
    else:
        assert isinstance(block, Resource)
    library = "numpy" if name == "a.npy" else "pandas"
    assert note.text.startswith(f"[With `import {library}`")
    assert note.text.endswith(" is shown as its data.]")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.xlsx", "a.npy", "a.jsonl"])
def test_a_file_that_is_not_what_its_name_says_is_shown_as_it_is(folder, convert, only, name):
    only("pandas", "numpy")  # some versions of polars read anything
    block, note = convert(write_file(folder / name, 'a,b\n1\n"2,3,4,5\n'))
    assert block.text == 'a,b\n1\n"2,3,4,5\n'
    assert " cannot read " in note.text


def test_a_file_that_is_too_large_is_not_read_as_data(folder, convert, monkeypatch):
    readers = {".csv": (data_files._Reader("pandas", None, most=10),)}
    monkeypatch.setattr(data_files, "READERS", readers)
    block, note = convert(write_file(folder / "a.csv", "a,b\n1,2\n3,4\n"))
    assert block.text == "a,b\n1,2\n3,4\n"
    assert note.text.endswith("is too large to be shown as its data: return a part of that.]")


def test_parquet_that_would_fill_the_memory_is_not_unpacked(folder, convert, monkeypatch):
    pd.DataFrame({"a": np.zeros(100_000)}).to_parquet(folder / "a.parquet")
    monkeypatch.setattr(data_files, "MAX_UNPACKED", 2**19)
    note = convert(folder / "a.parquet")[-1]
    assert note.text.endswith("takes 1 MiB in the memory: return a part of its data.]")


def test_of_very_many_rows_the_first_are_read_and_it_is_said(folder, convert, monkeypatch):
    monkeypatch.setattr(data_files, "MAX_ROWS", 100)
    LONG.to_csv(folder / "a.csv", index=False)
    note, text, *_ = convert(folder / "a.csv")
    assert note.text.endswith("the first 100 rows were read.]")
    assert text.text.startswith("DataFrame: 100 rows x 2 columns")


def test_an_empty_file_says_so(folder, to_text):
    assert to_text(write_file(folder / "a.csv", "")).endswith("is empty.]")


def test_paths_in_a_list_are_shown_as_their_tables(folder, convert):
    SHORT.to_csv(folder / "a.csv", index=False)
    [block] = convert([folder / "a.csv"])
    assert "DataFrame: 2 rows x 2 columns" in block.text
