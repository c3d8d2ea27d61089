"""The pages that name papers and figures: what stands on them is there, and no two pages disagree."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import tagframe
from tag_bench import baselines
from tag_bench.paper import TABLES
from tag_bench.retrieval import command

ROOT = Path(__file__).resolve().parents[1]
PAPERS = (ROOT / "docs/papers.md").read_text("utf-8")
FIGURES = (ROOT / "docs/benchmarks.md").read_text("utf-8")
DATA = (ROOT / "docs/benchmark-data.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

Row = list[str]


def rows(text: str) -> list[Row]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


PARTS = rows(PAPERS.split("<!-- parts -->")[1].split("\n## ")[0])


def module_of(name: str) -> str:
    """The module of an object: of the library, or of the harness."""
    module = name.strip("`").rpartition(".")[0]
    return module if module.startswith("tag_bench.") else f"tagframe.{module}".rstrip(".")


def function_of(name: str) -> tuple[Any, str]:
    """An object of the library, and its docstring with that of its module."""
    module, attribute = module_of(name), name.strip("`").rpartition(".")[2]
    found = getattr(importlib.import_module(module), attribute)
    return found, f"{inspect.getdoc(found)}\n{importlib.import_module(module).__doc__}"


def parameters(function: Any) -> set[str]:
    return {*inspect.signature(function).parameters}


def plain(text: str) -> str:
    return " ".join(text.split()).lower().replace("sections", "section").replace("equations", "equation")


@pytest.mark.parametrize("row", PARTS, ids=lambda row: f"{row[0]} {row[1]}")
def test_each_part_of_a_paper_is_where_the_page_says(row: Row):
    paper, place, _, function, test, _, verdict = row
    assert paper in {cells[0] for cells in rows(PAPERS.split("## Where")[0])}
    found, docs = function_of(function)
    assert callable(found)
    for one in re.findall(r"(?:sections?|equations?|appendix|algorithm) [A-Z]?[\d.]*(?: (?:to|and) [\d.]+)?", place):
        numbers = plain(one)
        assert numbers in plain(docs), f"the docstrings of {function} and its module do not name {one}"
    file, _, name = test.strip("`").partition("::")
    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / "tests" / file).read_text("utf-8"), flags=re.MULTILINE)
    assert verdict.startswith(("as printed", "deviates: "))


def deviations() -> dict[str, str]:
    """The code's own list: what each module says is not as printed."""
    files = [*(ROOT / "tagframe").rglob("*.py"), *(ROOT / "tag_bench").rglob("*.py")]
    modules = [file for file in files if re.search(r"^DEVIATIONS\b", file.read_text("utf-8"), flags=re.MULTILINE)]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in modules]
    return {key: text for name in names for key, text in importlib.import_module(name).DEVIATIONS.items()}


def test_the_page_has_the_deviations_of_the_code_and_no_others():
    listed = deviations()
    assert listed.keys() <= {f"{paper}: {place}" for paper, place, *_ in PARTS}
    for paper, place, _, function, _, _, verdict in PARTS:
        text = listed.get(f"{paper}: {place}", "")
        mark = "as printed; " if text.startswith("not printed: ") else "deviates: "
        assert verdict == (f"{mark}{text}" if text else "as printed")
        own = getattr(importlib.import_module(module_of(function)), "DEVIATIONS", {})
        assert not text or own.get(f"{paper}: {place}") == text, f"{function} is not of the module that says so"


def test_the_page_counts_twelve_statements_of_each_paper():
    counts = Counter(row[0] for row in PARTS)
    assert counts == dict.fromkeys((cells[0] for cells in rows(PAPERS.split("## Where")[0])), 12)
    assert len({(paper, place, what) for paper, place, what, *_ in PARTS}) == len(PARTS)
    printed = sum(row[6].startswith("as printed") for row in PARTS)
    sentence = f"Of these {len(PARTS)} statements, {printed} are as printed and {len(PARTS) - printed} deviate."
    assert sentence in " ".join(PAPERS.split())


def test_the_page_lists_each_table_that_one_command_makes():
    listed = rows(PAPERS.split("<!-- tables -->")[1].split("\n\n")[0])
    assert [(name.strip("`"), about) for name, about, _ in listed] == [
        (name, table["about"]) for name, table in TABLES.items()
    ]
    for (_, _, needs), table in zip(listed, TABLES.values(), strict=True):
        assert ("--lm" in needs) == any(row.get("model") for row in table["rows"])


def test_each_switch_is_an_argument():
    methods = tagframe.methods.METHODS.values()
    called = (*methods, baselines.text2sql, baselines.rag, baselines.PaperGen)
    takes = {"lm"}.union(*map(parameters, called))  # "lm" is a setting, which every call takes
    switches = {name for row in PARTS for name in re.findall(r"\b(\w+)=", row[5])}
    ours = {
        "as_printed",
        "variant",
        "weights",
        "omega",
        "covered_at",
        "beam",
        "hops",
        "ablate",
        "subqueries",
        "seconds",
    }
    assert ours <= switches <= takes


def test_the_citation_file_is_of_this_version_and_has_the_papers_of_the_page():
    assert CITATION["version"] == tagframe.__version__
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["license"] == "Apache-2.0"
    assert all(CITATION[name] for name in ("message", "title", "authors", "type"))
    page = rows(PAPERS.split("## Where")[0])
    assert len(CITATION["references"]) == len(page) == PAPERS.count("@inproceedings{")
    bibliography = PAPERS.split("```bibtex")[1].replace("{", "").replace("}", "")
    for reference, (_, title, _, _) in zip(CITATION["references"], page, strict=True):
        assert {"type", "title", "authors", "year", "url"} <= reference.keys()
        assert f"[{reference['title']}]({reference['url']})" in title
        names = [f"{one['given-names']} {one['family-names']}" for one in reference["authors"]]
        assert title.endswith(", ".join(names))
        assert reference["title"] in bibliography
        assert (
            " and ".join(f"{one['family-names']}, {one['given-names']}" for one in reference["authors"]) in bibliography
        )
        assert reference["url"] in bibliography


def test_the_readme_has_the_figures_of_the_page():
    def complete(start: str) -> list[str]:
        """Complete recall of a row: what follows the slash."""
        (row,) = [cells for cells in rows(FIGURES) if cells[0] == start]
        return [cell.split(" / ")[-1] for cell in row[1:]]

    said = dict(re.findall(r"^- (Spider|BIRD): (.+(?:\n  .+)*)", README, flags=re.MULTILINE))
    for name, questions in (("Spider", 459), ("BIRD", 1171)):
        ours, theirs = said[name].split("Published:")
        shipped, published = (
            complete(f"{name}, tagframe, weights as shipped"),
            complete(f"{name} ({questions:,} questions), published"),
        )
        assert re.findall(r"([\d.]+)%", ours) == [shipped[0], shipped[2]]
        assert re.findall(r"([\d.]+)%", theirs) == [published[0], published[2]]
    (pooled,) = re.findall(r"^- Spider 2, [\d,]+ pooled tables: ([\d.]+)% at K=5", README, flags=re.MULTILINE)
    assert pooled == complete("tagframe, weights as shipped")[0]


def test_jars_table_on_the_page_is_that_of_tag_bench():
    page = {cells[0]: cells[1:] for cells in rows(FIGURES.split("### JAR's table 1")[1].split("\n### ")[0])}
    for name, data in (("Spider", "spider"), ("BIRD", "bird")):
        for variant in ("JAR-D", "JAR-F", "JAR-G"):
            (printed,) = [row["printed"][data] for row in TABLES["jar-1"]["rows"] if row["name"] == variant]
            (cells,) = [page[row] for row in page if re.fullmatch(rf"{name} \(.+\), {variant}, published", row)]
            assert cells == [" / ".join(map(str, printed[at : at + 3])) for at in (0, 3, 6)]
        (ours,) = [page[row] for row in page if row.startswith(f"{name} (") and row.endswith("default method")]
        (shipped,) = [one for one in rows(FIGURES) if one[0] == f"{name}, tagframe, weights as shipped"]
        recalls = [cell.split(" / ")[1] for cell in ours[:2]]
        assert recalls == [shipped[1].split(" / ")[0], shipped[3].split(" / ")[0]]


def test_the_example_folder_of_the_page_is_a_benchmark(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    blocks = re.findall(r"`(dev\w*\.json)`:\n\n```json\n(.+?)```", DATA, flags=re.DOTALL)
    assert {name for name, _ in blocks} == {"dev.json", "dev_tables.json"}
    for name, text in blocks:
        (folder / name).write_text(text)
    assert len(json.loads((folder / "dev_tables.json").read_text())) == 3
    options = re.search(r"`python -m tag_bench retrieval --data FOLDER (.+?)`", DATA)
    assert options is not None
    records = tmp_path / "records.jsonl"
    asked = [*options[1].replace("FILE.jsonl", str(records)).split(), "--method", "lexical"]
    outcome = CliRunner().invoke(command, ["--data", str(folder), *asked])
    assert outcome.exit_code == 0, outcome.output
    report = json.loads(outcome.stdout)
    assert (report["dataset"], report["questions"], report["all"]["2"]["R"]) == ("shop", 1, 100.0)
    (record,) = map(json.loads, records.read_text().splitlines())
    assert record["gold_tables"] == ["shop.customer", "shop.purchase"]
    assert {"id", "question", "scores", "settings"} <= record.keys()
