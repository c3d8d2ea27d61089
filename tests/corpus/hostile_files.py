"""Files that claim more than they hold, never end, or are not what their names say: none stops what lies beside it.

``tests/corpus/test_hostile_files.py`` makes each of them, and opens it beside files that are in order in a process
that runs this module, which prints what became of it and how much memory that took.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tagframe as tf
from tagframe.engines.worker_pool import pool

Writer = Callable[[Path], object]
Made = Callable[[], str]
"""Makes a text that is large."""
FAR = "XFD1048576"


# --- workbooks ----------------------------------------------------------------------------------------------------

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def workbook(*sheets: str | Made, strings: str | Made = "", doctype: str = "") -> Writer:
    """A workbook of sheets, given as the XML of their rows, or what makes it."""

    def write(path: Path) -> None:
        numbers = range(1, len(sheets) + 1)
        listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
        related = "".join(
            f'<Relationship Id="r{n}" Type="{_TYPE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n in numbers
        )
        related += f'<Relationship Id="strings" Type="{_TYPE}/sharedStrings" Target="sharedStrings.xml"/>'
        root = f'<Relationship Id="r" Type="{_TYPE}/officeDocument" Target="xl/workbook.xml"/>'
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                "[Content_Types].xml",
                f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="text/xml"/></Types>',
            )
            archive.writestr("_rels/.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{root}</Relationships>')
            archive.writestr(
                "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_TYPE}"><sheets>{listed}</sheets></workbook>'
            )
            archive.writestr(
                "xl/_rels/workbook.xml.rels",
                f'<Relationships xmlns="{_PACKAGE}/relationships">{related}</Relationships>',
            )
            archive.writestr("xl/sharedStrings.xml", f'{doctype}<sst xmlns="{_MAIN}">{made(strings)}</sst>')
            for n, rows in zip(numbers, sheets, strict=True):
                sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{made(rows)}</sheetData></worksheet>'
                archive.writestr(f"xl/worksheets/sheet{n}.xml", sheet)

    return write


def made(text: str | Made) -> str:
    return text if isinstance(text, str) else text()


def cells(*references: str) -> str:
    """Rows with a number in each of these cells, in the order of their rows."""
    return "".join(
        f'<row r="{"".join(filter(str.isdigit, one))}"><c r="{one}"><v>1</v></c></row>' for one in references
    )


def grid(rows: int, columns: int, cell: str = "<c><v>1</v></c>") -> Made:
    return lambda: f"<row>{cell * columns}</row>" * rows


def blown_up() -> str:
    return cells("A1") + " " * 200 * 2**20


def lying(path: Path) -> None:
    """A sheet of 200 MB whose archive says that it has a thousand bytes."""
    workbook(blown_up)(path)
    data = bytearray(path.read_bytes())
    size = struct.pack("<I", zipfile.ZipFile(path).getinfo("xl/worksheets/sheet1.xml").file_size)
    path.write_bytes(data.replace(size, struct.pack("<I", 1000)))


def laughs(path: Path) -> None:
    """A text of 10^9 letters, by entities that stand for ten others each."""
    entities = '<!ENTITY a0 "haha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f"<!DOCTYPE sst [{entities}]>"
    workbook(grid(2, 2, '<c t="s"><v>0</v></c>'), strings="<si><t>&a9;</t></si>", doctype=doctype)(path)


def members(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(60_000):
            archive.writestr(f"xl/{number}", "")


def ods(path: Path) -> None:
    """A cell that is repeated in 16,384 columns and a million rows."""
    cell = '<table:table-cell table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    table = f'<table:table table:name="a">{row}</table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        )
        archive.writestr("content.xml", f"<office:document-content {names}>{body}</office:document-content>")


def cut(write: Writer) -> Writer:
    """The first half of a file."""

    def half(path: Path) -> None:
        write(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return half


WORKBOOKS: dict[str, Writer] = {
    "far.xlsx": workbook(cells("A1", "XFD1", "A1048576")),
    "far_corner.xlsx": workbook(cells(FAR)),
    "far_a_bit.xlsx": workbook(*[cells("A1", "Z20000")] * 100),
    "dense.xlsx": workbook(grid(30_000, 100)),
    "blown_up.xlsx": workbook(blown_up),
    "blown_up_cells.xlsx": workbook(grid(140_000, 100)),
    "strings.xlsx": workbook(cells("A1"), strings=lambda: "<si><t>x</t></si>" * 4_000_000),
    "long_string.xlsx": workbook(grid(5_000, 100, '<c t="s"><v>0</v></c>'), strings=f"<si><t>{'x' * 32_000}</t></si>"),
    "lying.xlsx": lying,
    "laughs.xlsx": laughs,
    "members.xlsx": members,
    "nested.xlsx": workbook("<a>" * 100_000),
    "odd_cells.xlsx": workbook(cells("A99999999999", "ZZZZZZZ1", "1", "A0")),
    "cut.xlsx": cut(workbook(grid(100, 10))),
    "empty.xlsx": lambda path: path.write_bytes(b""),
    "text.xls": lambda path: path.write_text("a,b\n1,2\n"),
    "compound.xls": lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xfe\xff\x00\x01" * 4096),
    "repeated.ods": ods,
}


# --- CSV and Parquet ----------------------------------------------------------------------------------------------


def csv(text: str | Made) -> Writer:
    return lambda path: path.write_text(made(text))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is at most about 100 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


CSVS: dict[str, Writer] = {
    "columns.csv": lambda path: path.write_text(",".join(f"c{n}" for n in range(1_000_000)) + "\n"),
    "columns_in_lines.csv": lambda path: path.write_text(",".join(f'"c\n{n}"' for n in range(100_000)) + "\n"),
    "one_line.csv": csv(lambda: "x" * 50_000_000),
    "open_quote.csv": csv(lambda: 'a,b\n1,2\n"' + "x,y\n" * 2_000_000),
    "wide_row.csv": csv(lambda: "a,b\n" + "1," * 5_000_000 + "\n"),
    "same_names.csv": csv(",".join("a" * 9_000) + "\n"),
    "digits.csv": csv(f"a,b\n{'9' * 100_000},1\n-{'8' * 100_000},2\n"),
    "odd_numbers.csv": csv("a,b\n1e999999,9999-99-99\n-inf,2001-02-30\nnan,0x1p9999\n"),
    "zeros.csv": lambda path: path.write_bytes(b"a,b\n\x00\x00\x00"),
    "half_a_letter.csv": lambda path: path.write_bytes(b"\xff\xfea\x00,"),
    "pipe.csv": pipe,
    "socket.csv": listening,
    "pipe.sqlite": pipe,
}


def parquet(**columns: object) -> Writer:
    def write(path: Path) -> None:
        pq.write_table(pa.table(columns), path)

    return write


def many_columns(path: Path) -> None:
    parquet(**{f"column_{number}": [1] for number in range(100_000)})(path)


def many_rows(path: Path) -> None:
    nothing = pa.table({"a": pa.nulls(50_000_000, pa.int32())})
    with pq.ParquetWriter(path, nothing.schema) as writer:
        for _ in range(6):
            writer.write_table(nothing)


def categories(path: Path) -> None:
    """A text of a megabyte in each of 3,000 rows, which is in the file once."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000, pa.int32()), pa.array(["x" * 2**20]))
    pq.write_table(pa.table({"a": text}), path, compression="gzip")


def with_footer(size: int) -> Writer:
    return lambda path: path.write_bytes(b"PAR1" + bytes(100) + struct.pack("<I", size) + b"PAR1")


PARQUETS: dict[str, Writer] = {
    "columns.parquet": many_columns,
    "rows.parquet": many_rows,
    "categories.parquet": categories,
    "footer.parquet": with_footer(2**31 - 1),
    "small_footer.parquet": with_footer(50),
    "cut.parquet": cut(parquet(a=list(range(10_000)))),
    "pipe.parquet": pipe,
}


# --- descriptions, statements and JSON ----------------------------------------------------------------------------


def ossie(fields: str) -> Writer:
    return csv(f"datasets:\n  - name: films\n    source: films\n    fields: {fields}\n")


_ALIASES = "a: &a [" + ", ".join(["{name: title}"] * 900) + "]\nb: &b [" + ", ".join(["*a"] * 900) + "]"

DESCRIPTIONS: dict[str, Writer] = {
    "aliases.yml": csv(_ALIASES + "\ndatasets: [" + ", ".join(["{name: films, fields: *a}"] * 900) + "]\n"),
    "deep.yml": csv("datasets: " + "[" * 100_000),
    "day.yml": ossie("[{name: title, description: 2001-99-99}]"),
    "int.yml": ossie("[{name: title, description: !!int x}]"),
    "moment.yml": ossie("[{name: title, description: !!timestamp x}]"),
    "digits.yml": ossie(f"[{{name: {'9' * 100_000}}}]"),
    "code.yml": ossie("[{name: !!python/object/apply:os.getcwd []}]"),
    "keys.yml": ossie("{[1, 2]: 3, {a: b}: c}"),
    "pipe.yml": pipe,
    "fields.csv": csv("table,column,description\n" + '"' + "x" * 1_000_000 + '"\n'),
}

STATEMENTS: dict[str, Writer] = {
    "minuses.sql": csv("SELECT " + "- " * 40_000 + "1 FROM films"),
    "brackets.sql": csv("SELECT " + "(" * 40_000 + "1" + ")" * 40_000 + " FROM films"),
    "queries.sql": csv("SELECT * FROM (" * 5_000 + "films" + ")" * 5_000),
    "digits.sql": csv(f"SELECT title FROM films LIMIT {'9' * 90_000}"),
    "deep.json": csv("[" * 100_000),
    "digits.json": csv(f'[{{"sql": "SELECT title FROM films", "runs": {"9" * 100_000}}}]'),
    "rows.jsonl": csv('{"sql": "SELECT title FROM films"}\n[1]\n7\n' + "[" * 100_000),
    "wide.csv": csv(lambda: "sql\n" + "x," * 1_000_000),
    "pipe.sql": pipe,
}

HOSTILE: dict[str, tuple[str, Writer]] = {
    **{f"tables/{name}": ("tables", write) for name, write in {**WORKBOOKS, **CSVS, **PARQUETS}.items()},
    **{f"descriptions/{name}": ("descriptions", write) for name, write in DESCRIPTIONS.items()},
    **{f"statements/{name}": ("statements", write) for name, write in STATEMENTS.items()},
}
"""What a file is opened as, and what writes it; by a name whose last part is the file's."""

HARMLESS = frozenset(
    "tables/digits.csv tables/odd_numbers.csv tables/half_a_letter.csv "
    "tables/categories.parquet "
    "tables/odd_cells.xlsx tables/laughs.xlsx tables/nested.xlsx tables/strings.xlsx tables/blown_up.xlsx "
    "descriptions/keys.yml statements/digits.sql "
    "statements/digits.json statements/rows.jsonl".split()
)
"""Those that may be read, and are not left out."""


def make(folder: Path) -> Path:
    """A folder of tables that are in order: CSV, Parquet and a workbook."""
    folder.mkdir(parents=True)
    films = pd.DataFrame({"film_id": [1, 2, 3], "title": ["Alien", "Brazil", "Casablanca"]})
    films.to_csv(folder / "films.csv", index=False)
    films.rename(columns={"title": "place"}).to_parquet(folder / "places.parquet")
    workbook(grid(3, 2))(folder / "sums.xlsx")
    return folder


GOOD = {"films", "places", "s1"}
_YAML = """
name: good
datasets: [{name: films, source: films, fields: [{name: title, description: what it is called}]}]
"""


def write(name: str, folder: Path) -> Path:
    """The folder of a hostile file, with good ones beside it."""
    source = make(folder / "source")
    beside = folder / "beside"
    beside.mkdir()
    kind, writer = HOSTILE[name]
    file = (source / "more" if kind == "tables" else beside) / name.rpartition("/")[2]
    file.parent.mkdir(exist_ok=True)
    writer(file)
    if kind == "descriptions":
        (beside / "good.yml").write_text(_YAML)
    if kind == "statements":
        (beside / "good.sql").write_text("SELECT f.title FROM films f JOIN places p ON f.film_id = p.film_id")
    return folder


def outcome(name: str, folder: Path) -> dict[str, object]:
    """What becomes of a hostile file that was written into a folder.

    Returns:
        ``said`` of it, in problems; ``lost`` of the good ones.

    Raises:
        Exception: whatever stopped the others.
    """
    kind, _ = HOSTILE[name]
    source, beside = folder / "source", folder / "beside"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corpus = tf.open_corpus(source, progress=False)
        said = [str(problem) for problem in corpus.problems]
        lost = GOOD - {corpus.profile(id).name for id in corpus.ids}
        assert all(corpus.profile(id).columns for id in corpus.ids)
        if "films" not in lost:
            assert len(corpus.read("films")) == 3
        if kind == "descriptions":
            said = list(corpus.describe(beside).unread)
            if corpus.profile("films").column("title").description != "what it is called":
                lost.add("a description")
        if kind == "statements":
            learned = corpus.learn(beside)
            said = [f"{text[:100]}: {why}" for text, why in learned.left_out]
            if not learned.joins:
                lost.add("a join")
    pool().close()
    return {"said": said, "lost": sorted(lost)}


_KINDS = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def memory() -> float:
    """Megabytes that this process, or the largest that it started and has ended, had at most."""
    own, other = (resource.getrusage(kind).ru_maxrss / 1024 for kind in _KINDS)
    status = Path("/proc/self/status")
    if status.exists():  # what the process that started this one had is in ru_maxrss, too
        own = next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line[:6] == "VmHWM:")
    return max(own, other)


def open_each(folder: Path, names: list[str]) -> None:
    """A line of JSON for each: what became of it, and the memory of this process until then."""
    for name in names:
        there = folder / name
        os.environ.update(XDG_CACHE_HOME=f"{there}/cache", XDG_DATA_HOME=f"{there}/data")
        try:
            found = outcome(name, there)
        except BaseException as error:
            found = {"raw": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"name": name, **found, "memory": memory()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    open_each(Path(sys.argv[1]), sys.argv[2:])
