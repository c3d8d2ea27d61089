"""``tag_bench paper``: the tables and figures of the four papers, each by one command.

``papers.toml`` says for each table which runs are its rows, and which means over their records are its columns. Runs
write records, and go on from them. The table is written as Markdown, CSV and LaTeX, and as a picture, with the figures
in print in a row of their own and the card of each run.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import pandas as pd

from tag_bench import LazyGroup, benchmark
from tag_bench.as_published import name_of
from tag_bench.records import Record, read_records
from tagframe.errors import needing
from tagframe.retrieval import method_named
from tagframe.retrieval.method import WithSubqueries
from tagframe.retrieval.methods import CRUSH

TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
"""The tables by name; the file says how they are written."""
SUBQUERIES, SCHEMAS = "decomp.json", "crush_hallucinated_schemas.json"
"""What models made of the questions of a folder: JAR's sub-queries, and CRUSH's schemas."""
OF_ROWS = frozenset({"--method", "-k", "--prompt", "--decompositions", "--data", "--records", "--json"})
"""Options that rows have themselves."""
NEEDS_MODEL = "needs --lm"
"""What stands in the cells of a row that cannot be made without a model."""


def groups_of(record: Record) -> Iterator[str]:
    """The groups of questions that a record belongs to, which columns name: its size, its hardness, its type."""
    yield ""
    if "gold_tables" in record:
        count = len(record["gold_tables"])
        yield f"{count} tables"
        yield from (f">={least} tables" for least in range(2, count + 1))
    yield from (str(record[name]) for name in ("hardness", "type", "kind") if record.get(name))


def value_of(record: Record, measure: str) -> float | None:
    """A record's value of a measure; shares are in percent; None if it has none.

    Measures are scores (``R@5``), ``seconds`` and ``seconds@5``, statuses of a program (``optimal@5``), whether a hop
    was made (``hop 2``), the mean ``rank`` of the needed tables, ``questions``, and truths of answers (``strict``).
    """
    name, _, size = measure.partition("@")
    facts = record.get("facts", {})
    if measure == "questions":
        return 1.0
    if measure == "rank":
        return statistics.fmean(record["gold_ranks"]) if record.get("gold_ranks") else None
    if name == "seconds":
        taken = record.get("seconds")
        return float(taken["prepare"] + taken[f"choose@{size}"]) if isinstance(taken, dict) else taken
    if name.startswith("hop "):
        return 100.0 * float(next(iter(facts.values()))["hops"] >= int(name.removeprefix("hop ")))
    if measure in record.get("scores", {}):
        return 100.0 * float(record["scores"][measure])
    if "status" in facts.get(size, {}):
        return 100.0 * float(facts[size]["status"] == name)
    truth = record.get(measure)
    return None if truth is None else 100.0 * float(truth)


def cell(records: Sequence[Record], column: str) -> float | None:
    """The mean of ``MEASURE``, or of ``MEASURE of GROUP``; ``questions`` and ``sum`` of seconds are sums."""
    measure, _, group = column.partition(" of ")
    is_sum = measure.startswith("sum ")
    name = measure.removeprefix("sum ")
    every = [value_of(record, name) for record in records if group in groups_of(record)]
    values = [value for value in every if value is not None]
    if name == "questions":
        return len(values)
    if not values:
        return None
    return sum(values) if is_sum else statistics.fmean(values)


def run(arguments: Sequence[str], records: Path, context: click.Context) -> Record:
    """Run a command of the harness; its records go to a file. Returns its result."""
    group = LazyGroup("tag_bench", Path(__file__).parent, "")
    command = group.get_command(context, arguments[0])
    assert command is not None
    result = records.with_suffix(".json")
    options = [*arguments[1:], "--records", str(records), "--json", str(result)]
    options += ["--cache", str(records.parent / "vectors")] if arguments[0] == "retrieval" else []
    with command.make_context(arguments[0], options, parent=context.parent) as own:
        command.invoke(own)
    return dict(json.loads(result.read_text(encoding="utf-8")))


def lines_of(
    name: str, data: Path, more: Sequence[str], values: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, list[str] | None, Mapping[str, Any]]]:
    """The rows of a table: name, arguments of the command, and what the file says; no arguments without a model.

    The name says what took the place of a model, and which values are not those of the file.
    """
    table, has_model = TABLES[name], "--lm" in more
    for row in table["rows"]:
        command = shlex.split(table["command"].format_map({**table.get("values", {}), **row, **values}))
        command, in_place = _as_run(command, data, has_model)
        if row.get("model", False) and not has_model:
            yield row["name"], None, row
            continue
        label = ", ".join([row["name"], *(f"{name}={value}" for name, value in values.items()), *in_place])
        yield label, [*command, "--data", str(data), *more], row


def _as_run(command: list[str], data: Path, has_model: bool) -> tuple[list[str], list[str]]:
    """The command with what a model has made of the questions, or is to make, and what takes its place without one."""
    if command[0] == "answers":
        return command, ["recorded judgements in place of a model"] if "--lm" in command and not has_model else []
    at = command.index("--method") + 1
    method = method_named(command[at])
    is_crush, has_subqueries = isinstance(method, CRUSH), isinstance(method, WithSubqueries)
    made_by_model = data / (SCHEMAS if is_crush else SUBQUERIES)
    if (is_crush or has_subqueries) and made_by_model.is_file():
        return [*command, "--decompositions", str(made_by_model)], []
    if has_model:
        asking = f"{command[at]},subqueries=model" if has_subqueries else command[at]
        return [*command[:at], asking, *command[at + 1 :]], []
    if is_crush and (data / SUBQUERIES).is_file():
        return [*command, "--decompositions", str(data / SUBQUERIES)], ["JAR's sub-queries in place of a schema"]
    return command, ["rules in place of a model"] if has_subqueries or method.asks_model else []


def made(
    name: str, data: Path, out: Path, more: Sequence[str], values: Mapping[str, str], context: click.Context
) -> tuple[pd.DataFrame, Record]:
    """A table, ours and in print, and the cards of its runs."""
    table = TABLES[name]
    rows: dict[str, dict[str, Any]] = {}
    cards: Record = {}
    for label, command, row in lines_of(name, data, more, values):
        columns = {head: column.format_map(row) for head, column in table["columns"].items()}
        if command is None:
            rows[label] = dict.fromkeys(columns, NEEDS_MODEL)
        else:
            digest = hashlib.md5(shlex.join(command).encode(), usedforsecurity=False).hexdigest()
            file = out / f"{digest[:12]}.jsonl"  # tables whose rows have the same command share its records
            cards[label] = run(command, file, context)["card"]
            records = read_records(file)
            rows[label] = {head: _rounded(cell(records, column)) for head, column in columns.items()}
        if printed := row.get("printed", {}).get(name_of(data)):
            rows[f"{row['name']}, in print"] = dict(zip(columns, printed, strict=False))
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(table["rows_are"]), cards


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3 if abs(value) < 1 else 1)


def as_markdown(frame: pd.DataFrame) -> str:
    """The table in Markdown."""
    head = [str(frame.index.name), *map(str, frame.columns)]
    lines = [head, ["---"] * len(head), *_lines(frame)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _lines(frame: pd.DataFrame) -> list[list[str]]:
    return [[str(name), *map(_text, row)] for name, row in zip(frame.index, frame.to_numpy(), strict=True)]


def as_latex(frame: pd.DataFrame, about: str) -> str:
    """The table in LaTeX, with booktabs."""
    texts = pd.DataFrame(_lines(frame), columns=[str(frame.index.name), *map(str, frame.columns)])
    escaped = texts.to_latex(index=False, escape=True, caption="CAPTION", column_format=f"l{'r' * len(frame.columns)}")
    caption = "".join(f"\\{sign}" if sign in "&%$#_{}" else sign for sign in about)
    for sign, written in {"CAPTION": caption, "≥": r"$\geq$", "λ": r"$\lambda$", ">": "$>$"}.items():
        escaped = escaped.replace(sign, written)
    return escaped


def _text(value: Any) -> str:
    return "-" if value is None or value != value else f"{value:g}" if isinstance(value, float) else str(value)


def draw(frame: pd.DataFrame, about: str, kind: str, file: Path) -> None:
    """The table as bars or lines; what is no number is left out, and beside shares their questions and seconds."""
    with needing('a picture needs matplotlib: pip install "tagframe[plot]"'):
        from matplotlib import pyplot
    numbers = frame.apply(pd.to_numeric, errors="coerce")
    numbers = numbers[[head for head in numbers if head not in ("questions", "seconds")] or [*numbers]]
    figure, axes = pyplot.subplots(figsize=(9, 5))
    numbers.plot(ax=axes, kind=kind, marker="o") if kind == "line" else numbers.plot(ax=axes, kind=kind)
    axes.set_title(about, fontsize=9)
    axes.tick_params(axis="x", labelrotation=20)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def listing() -> str:
    """The tables, with the commands of their rows."""
    return "\n".join(f"{name:<16}{table['about']}" for name, table in TABLES.items())


@benchmark("paper")
@click.argument("name", required=False)
@click.option("--data", type=click.Path(exists=True, path_type=Path), help="The folder or file of the data.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where the table and its records go.")
@click.option("--list", "lists", is_flag=True, help="Print the names of the tables.")
@click.option(
    "--set", "values", multiple=True, metavar="NAME=VALUE", help="Another value than the table's: seconds=60."
)
@click.argument("more", nargs=-1, type=click.UNPROCESSED)
def command(
    name: str | None, data: Path | None, out: Path | None, lists: bool, values: tuple[str, ...], more: tuple[str, ...]
) -> dict[str, Any] | None:
    """A table or figure of a paper: NAME.md, .csv, .tex and .png in --out; MORE options go to the runs, after --.

    Example: python -m tag_bench paper iterative-jar-3 --data spider --out tables --set seconds=60 -- --limit 100
    """
    if lists:
        click.echo(listing())
        return None
    if name is None or name not in TABLES or data is None or out is None:
        raise click.UsageError(f"give --data, --out, and one of {', '.join(TABLES)}")
    given = dict(value.partition("=")[::2] for value in values)
    if unknown := [*(given.keys() - TABLES[name].get("values", {}).keys()), *(OF_ROWS & {*more})]:
        raise click.UsageError(f"{name} does not take {', '.join(sorted(unknown))}: its rows say it")
    if out.resolve().is_relative_to((data if data.is_dir() else data.parent).resolve()):
        raise click.UsageError(f"{out} lies in the data, of which each record has a hash; give --out another folder")
    out.mkdir(parents=True, exist_ok=True)
    frame, cards = made(name, data, out, more, given, click.get_current_context())
    about = f"{TABLES[name]['about']} ({' '.join([name_of(data), *more])})"
    note = f"{about}\n\n{as_markdown(frame)}\n" + "".join(f"- {row}: {one}\n" for row, one in cards.items())
    (out / f"{name}.md").write_text(note, encoding="utf-8")
    frame.to_csv(out / f"{name}.csv")
    (out / f"{name}.tex").write_text(as_latex(frame, about), encoding="utf-8")
    draw(frame, about, TABLES[name].get("kind", "bar"), out / f"{name}.png")
    click.echo(frame.to_string(), err=True)
    table = {str(row): {**values} for row, values in frame.astype(object).where(frame.notna(), None).iterrows()}
    return {"table": name, "about": about, "rows": table, "cards": cards}
