"""Tables and arrays in files, with the libraries that the notebook has loaded."""

import io
import json
import re
import zipfile
from datetime import date
from importlib import import_module
from importlib.util import find_spec

import pytest
from optional_libraries import import_optional
from sample_files import write_file

from mcp_notebook.content import Resource, ResourceLink
from mcp_notebook.kernel.results.files import data_files

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")
pa = import_optional("pyarrow")
feather = import_optional("pyarrow.feather")
parquet = import_optional("pyarrow.parquet")

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


def files(*names):
    """Return the names as cases; those of Parquet, Feather and Excel need a library."""
    needed = {"parquet": "pyarrow", "feather": "pyarrow", "xlsx": "openpyxl"}
    marks = {ending: pytest.mark.needs(library) for ending, library in needed.items()}
    return [pytest.param(name, marks=marks.get(name.rpartition(".")[2], ())) for name in names]


@pytest.fixture
def only(monkeypatch):
    """Return a function that leaves some libraries loaded of those that read tables."""

    def keep(*libraries):
        loaded = {name: import_module(name) for name in libraries}
        monkeypatch.setattr(data_files, "find_imported", loaded.get)

    return keep


def texts(blocks):
    return [block.text for block in blocks if not isinstance(block, ResourceLink)]


@pytest.mark.parametrize("name", files(*WRITERS))
def test_a_file_of_a_table_is_shown_as_the_table(folder, convert, name):
    for frame in (SHORT, LONG):
        WRITERS[name](frame, folder / name)
        of_file, of_frame = convert(folder / name), convert(frame)
        assert texts(of_file) == texts(of_frame)
        links = [block.name for block in of_file if isinstance(block, ResourceLink)]
        if frame is LONG:
            assert links[:-1] == ["table.csv", *["table.parquet"] * bool(find_spec("pyarrow"))]
        assert links[-1:] == [name]


@pytest.mark.needs("polars")
@pytest.mark.parametrize("name", files("a.csv", "a.tsv", "a.parquet", "a.feather", "a.jsonl"))
def test_polars_reads_what_pandas_would(folder, convert, only, name):
    WRITERS[name](SHORT, folder / name)
    only("polars")
    text, *_ = convert(folder / name)
    assert text.text.startswith("polars DataFrame: 2 rows x 2 columns; city String, mm Float64\n")
    assert text.text.endswith("Oslo,")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_text_in_any_encoding_is_read(folder, convert, only, library, encoding):
    only(library)
    text, _ = convert(write_file(folder / "a.csv", "größe;n\nklein;1\n".encode(encoding)))
    assert text.text.endswith("größe,n\nklein,1")


@pytest.mark.needs("openpyxl")
def test_sheets_are_shown_one_by_one(folder, convert):
    with pd.ExcelWriter(folder / "a.xlsx") as writer:
        SHORT.to_excel(writer, sheet_name="rain", index=False)
        LONG.to_excel(writer, sheet_name="long", index=False)
    text = "\n".join(texts(convert(folder / "a.xlsx")))
    assert "rain:\n" in text
    assert "DataFrame: 2 rows x 2 columns" in text
    assert "DataFrame: 200 rows x 2 columns" in text


@pytest.mark.smoke
def test_an_array_is_shown_as_the_array(folder, convert):
    array = np.arange(6).reshape(2, 3)
    np.save(folder / "a.npy", array)
    text, link = convert(folder / "a.npy")
    assert text.text == "array of shape (2, 3), int64\n\n0,1,2\n3,4,5"
    assert link.name == "a.npy"
    np.savez(folder / "a.npz", x=array, y=np.ones(2))
    assert "0,1,2" in convert(folder / "a.npz")[0].text


def test_nothing_that_is_pickled_in_a_file_is_run(folder, convert):
    np.save(folder / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    resource, note = convert(folder / "a.npy")
    assert isinstance(resource, Resource)
    assert "numpy cannot read" in note.text
    assert "allow_pickle=False" in note.text


@pytest.mark.parametrize("name", files("a.csv", "a.parquet", "a.xlsx", "a.npy"))
def test_without_a_library_a_file_is_shown_as_any_other_with_a_hint(folder, convert, only, name):
    WRITERS.get(name, lambda _, path: np.save(path, np.ones(3)))(SHORT, folder / name)
    only()
    block, note = convert(folder / name)
    if name == "a.csv":
        assert block.text == "city,mm\nRome,1.5\nOslo,\n"
    else:
        assert isinstance(block, Resource)
    library = "numpy" if name == "a.npy" else "pandas"
    assert note.text.startswith(f"[After `import {library}`")
    assert note.text.endswith(" is shown as data.]")


@pytest.mark.parametrize("name", files("a.csv", "a.parquet", "a.xlsx", "a.npy", "a.jsonl"))
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
    assert note.text.endswith("is too large to be read as data: return a part of it.]")


@pytest.mark.needs("pyarrow")
def test_parquet_that_would_fill_the_memory_is_not_unpacked(folder, convert, monkeypatch):
    pd.DataFrame({"a": np.zeros(100_000)}).to_parquet(folder / "a.parquet")
    monkeypatch.setattr(data_files, "MAX_UNPACKED", 2**19)
    note = convert(folder / "a.parquet")[-1]
    assert note.text.endswith("takes 1 MiB in memory: return a part of its data.]")


@pytest.mark.needs("openpyxl")
def test_a_spreadsheet_that_would_fill_the_memory_is_not_unpacked(folder, convert, monkeypatch):
    monkeypatch.setattr(data_files, "MAX_UNPACKED", 2**24)
    SHORT.to_excel(folder / "small.xlsx", index=False)
    with (
        zipfile.ZipFile(folder / "small.xlsx") as small,
        zipfile.ZipFile(folder / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in small.namelist():
            content = small.read(name)
            if name.endswith("sheet1.xml"):
                content = content.replace(b"Rome", b"R" * (data_files.MAX_UNPACKED + 1))
            bomb.writestr(name, content)
    assert (folder / "bomb.xlsx").stat().st_size < 2**20
    note = convert(folder / "bomb.xlsx")[-1]
    assert "takes 16 MiB in memory" in note.text


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_an_array_that_claims_to_be_huge_takes_no_memory(folder, convert, name):
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    np.lib.format.write_array_header_1_0(header, about)
    if name == "a.npz":
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("a.npy", header.getvalue())
    else:
        (folder / name).write_bytes(header.getvalue())
    assert "numpy cannot read" in convert(folder / name)[-1].text


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ipynb"])
def test_a_file_of_deep_json_is_shown_as_text(folder, convert, name):
    text = "[" * 100_000 + "]" * 100_000
    blocks = convert(write_file(folder / name, text), max_result_chars=2_000)
    assert blocks[0].text.startswith("[[[[")


def test_of_very_many_rows_the_first_are_read_and_it_is_said(folder, convert, monkeypatch):
    monkeypatch.setattr(data_files, "MAX_ROWS", 100)
    LONG.to_csv(folder / "a.csv", index=False)
    note, text, *_ = convert(folder / "a.csv")
    assert note.text.startswith("[Only the first 100 rows of ")
    assert text.text.startswith("DataFrame: 100 rows x 2 columns")


def test_an_empty_file_says_so(folder, to_text):
    assert to_text(write_file(folder / "a.csv", "")).endswith("is empty.]")


def test_paths_in_a_list_are_shown_as_their_tables(folder, convert):
    SHORT.to_csv(folder / "a.csv", index=False)
    block, link = convert([folder / "a.csv"])
    assert "DataFrame: 2 rows x 2 columns" in block.text
    assert link.name == "a.csv"


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "rows",
    [
        ["01234,NA", "98765,null"],
        ["01234,größe", "98765,null"],
        ["+0049,1", "+0033,2"],
        ["-007.50,nan", "1.5,N/A"],
        ["9007199254740993,1", ",2"],
        ["1,9007199254740993", "2,0.5"],
        ["012345678901234567,1", "12345678901234567,2"],
        ["1E5,1", "20000,2"],
        ["1e20,1", "3E400,2"],
        ["+4712345678,1", "4798765432,2"],
    ],
)
def test_a_table_has_the_texts_of_its_file(folder, convert, only, library, rows):
    only(library)
    text = "\n".join(["zip,cc", *rows])
    block, link = convert(write_file(folder / "a.csv", f"{text}\n"))
    assert block.text.startswith(("DataFrame: 2 rows", "polars DataFrame: 2 rows"))
    assert block.text.replace('"', "").endswith(text)
    assert link.name == "a.csv"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_integer_that_no_library_has_room_for_is_as_in_its_file(folder, convert, only, library):
    only(library)
    rows = "n,m\n0012345678901234567890123,1\n2345678901234567890123,2"
    text = convert(write_file(folder / "a.csv", f"{rows}\n"))[0].text
    assert text.replace('"', "").rstrip().endswith(rows)  # the table, or in older versions the text


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_other_columns_than_those_of_codes_are_numbers(folder, convert, only, library):
    only(library)
    rows = "n,code,day,n\n1,7,2020-01-01,1.5\n2,007,2020-01-02,2.5\n"
    text = convert(write_file(folder / "a.csv", rows))[0].text
    assert re.search(r"; n [Ii]nt64, code \w+, day \w+, n\S* [Ff]loat64", text)
    assert text.endswith("1,7,2020-01-01,1.5\n2,007,2020-01-02,2.5")


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "start", ["# made by hand\na,b\n1,2\n", "#,x\na,b\n", "a,b\n0,2,3\n1,5,6\n"]
)
def test_what_is_not_a_table_of_its_header_is_shown_as_text(folder, convert, only, library, start):
    only(library)
    block, note = convert(write_file(folder / "a.csv", start))
    assert block.text == start
    assert " cannot read " in note.text


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_has_the_values_of_its_json_lines(folder, convert, only, library):
    only(library)
    lines = [{"id": "007", "n": 2**53 + 1, "date": 1_700_000_000, "cc": "NA"}] * 200
    lines += [{"id": "1", "n": None, "date": 1, "cc": None, "late": "a\u2028b"}]
    path = folder / "a.jsonl"
    path.write_text("\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    text = convert(path)[0].text
    assert "007,9007199254740993,1700000000,NA," in text.replace('"', "")
    assert text.endswith("a\u2028b")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_long_integer_in_json_lines_is_not_rounded_beside_floats(folder, convert, only, library):
    only(library)
    lines = [{"a": 2**53 + 1, "b": [2**53 + 1, 1]}, {"a": 0.5, "b": [0.5]}, {"a": None}]
    path = write_file(folder / "a.jsonl", "\n".join(map(json.dumps, lines)))
    text, link = convert(path)
    assert text.text.endswith('\n9007199254740993,"[9007199254740993, 1]"\n0.5,[0.5]\n,')
    assert link.name == "a.jsonl"


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_integers_with_a_missing_one_among_them_have_no_decimals(
    folder, convert, only, library, name
):
    only(library)
    csv_text = "id,mm,empty\n1,1.0,\n,,\n3,2.0,\n"
    lines = ({"id": 1, "mm": 1.0}, {"id": None, "empty": None}, {"id": 3, "mm": 2.0})
    write_file(folder / name, csv_text if name == "a.csv" else "\n".join(map(json.dumps, lines)))
    assert convert(folder / name)[0].text.endswith(csv_text.strip())


def arrow_table():
    return pa.table(
        {
            "id": pa.array([2**60 + 1, None, 2**60]),
            "big": pa.array([None, 2**64 - 1, 0], pa.uint64()),
            "point": [{"x": 1}, {"x": None}, None],
            "list": [[1, None], [2**53 + 1], None],
            "mm": [0.5, None, 1.5],
            "day": [date(2020, 1, 2), None, None],
        }
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", files("a.parquet", "a.feather"))
def test_integers_of_a_file_are_not_rounded_where_others_are_missing(
    folder, convert, only, library, name
):
    only(library)
    write = parquet.write_table if name == "a.parquet" else feather.write_feather
    write(arrow_table(), folder / name)
    text, *_ = convert(folder / name)
    _, header, *rows = text.text.replace("'", "").split("\n")[1:]
    assert header == "id,big,point,list,mm,day"
    assert rows == [
        '1152921504606846977,,{x: 1},"[1, None]",0.5,2020-01-02',
        ",18446744073709551615,{x: None},[9007199254740993],,",
        "1152921504606846976,0,,,1.5,",
    ]


@pytest.mark.needs("pyarrow")
def test_the_links_of_such_a_file_have_the_same_integers(folder, convert, store):
    parquet.write_table(arrow_table().select(["id", "list"]), folder / "a.parquet")
    *_, as_csv, as_parquet, link = convert(folder / "a.parquet", max_table_rows=2)
    csv_text = store.find_format(as_csv.uri).content()
    assert (
        csv_text
        == 'id,list\n1152921504606846977,"[1, None]"\n,[9007199254740993]\n1152921504606846976,\n'
    )
    table = parquet.read_table(io.BytesIO(store.find_format(as_parquet.uri).content()))
    assert table.to_pylist() == arrow_table().select(["id", "list"]).to_pylist()
    assert link.name == "a.parquet"


@pytest.mark.needs("pyarrow")
def test_an_index_of_integers_is_not_rounded(folder, convert):
    pd.DataFrame(
        {"n": [1, 2]}, index=pd.Index([2**60 + 1, None], dtype="Int64", name="id")
    ).to_parquet(folder / "a.parquet")
    assert convert(folder / "a.parquet")[0].text.endswith("id,n\n1152921504606846977,1\n,2")


@pytest.mark.parametrize(
    "libraries",
    [
        pytest.param(["pandas", "polars"], marks=pytest.mark.needs("polars")),
        pytest.param(["polars"], marks=pytest.mark.needs("polars")),
        ["pandas"],
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "text", ['a,b\n"unclosed,1\n2,3\n', 'a,b\n1,2\n3,"unclosed\n4,5\n', 'a,b\n1,5" pipe\n2,ok\n']
)
def test_no_row_is_lost_behind_an_open_quote(folder, convert, only, libraries, text):
    only(*libraries)
    block, note = convert(write_file(folder / "a.csv", text))
    if " pipe" in text and ("pandas" in libraries or block.text != text):  # polars 1.30 reads it
        assert block.text.endswith('\na,b\n1,"5"" pipe"\n2,ok')
    else:
        assert block.text == text
        assert note.text.startswith(f"[{libraries[0]} cannot read ")


@pytest.mark.needs("openpyxl")
def test_a_table_has_the_texts_of_its_sheet(folder, convert):
    frame = pd.DataFrame(
        {
            "id": ["01", "2"],
            "cc": ["NA", "null"],
            "n": [1, 2],
            "x": [1.5, None],
            "day": pd.to_datetime(["2020-01-02", None]),
        }
    )
    frame.to_excel(folder / "a.xlsx", index=False)
    assert convert(folder / "a.xlsx")[0].text == convert(frame)[0].text


def test_the_link_of_a_text_leads_to_the_file_as_it_is(folder, convert, store):
    content = "größe;n\n1,50;NA\n"
    *_, link = convert(write_file(folder / "a.csv", content.encode("cp1252")))
    assert store.find_format(link.uri).content() == content
