"""The ``tagframe`` command: each subcommand calls one room."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import click

import tagframe
from tagframe import config
from tagframe.errors import NotWritten, TagframeError, counted
from tagframe.storage import writing


class _Group(click.Group):
    """The subcommands."""

    def invoke(self, ctx: click.Context) -> Any:
        # Our errors and warnings say the fact and the way out. A traceback or a line of Python would hide both.
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: click.echo(f"Warning: {_as_options(str(message))}", err=True)
            try:
                return super().invoke(ctx)
            except BrokenPipeError:  # whoever reads our output has enough: click ends silently
                raise
            except (TagframeError, OSError) as error:
                raise click.ClickException(_as_options(str(error))) from error


def _as_options(text: str) -> str:
    """The message with the shell's options in place of Python's keywords."""
    keywords = "how|on_fanout|on_loss|on_ambiguous|min_chance|roles|follow_links|limit"
    named = re.compile(rf"\b({keywords})=['\"]?([\w.]*\w)['\"]?")
    text = named.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2]}", text)
    return re.sub(r'\bon="', '--on "', text.replace("distinct=True", "--distinct"))


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tagframe.__version__)
def main() -> None:
    """Find the tables that answer a question together, join them, and answer it.

    CORPUS is a SQLite file, a folder of SQLite, CSV, Parquet and Excel files (a subfolder is a database), a file of
    CREATE TABLE statements (.sql), or a catalogue written by "tagframe index", which keeps the descriptions of such
    tables.
    """


HowMany = int | Literal["auto"] | None


class _Count(click.IntRange):
    """A number of tables, or "auto"."""

    name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, at least 1, or the word."""
        return value if value == "auto" else super().convert(value, param, ctx)


_LINKS: dict[str, Any] = {"is_flag": True, "help": "Follow links that lead out of the folder."}
_HIDE: dict[str, Any] = {
    "multiple": True, "metavar": "NAME",
    "help": "A table, or a column as table.column, that does not exist for this command (repeatable).",
}  # fmt: skip


def _corpus(command: Callable[..., None]) -> Callable[..., None]:
    """A command over a corpus, which :func:`_opened` opens."""

    def option(name: str, **given: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
        def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
            ctx.meta[str(param.name)] = value

        return click.option(name, expose_value=False, callback=keep, **given)

    links = option("--follow-links", **_LINKS)
    of_csv = 'An option of pandas.read_csv for CSV files: "decimal=," or "dayfirst=true" (repeatable).'
    csv = option("--csv", help=of_csv, multiple=True, metavar="NAME=VALUE")
    hide = option("--hide", **_HIDE)
    argument: Callable[[Callable[..., None]], Callable[..., None]] = click.argument("corpus")
    return argument(hide(csv(links(command))))


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f'{text!r} is not of the form NAME=VALUE, such as "decimal=,"', param_hint="--csv")
    plain = {"true": True, "false": False}.get(value.lower(), value)
    return name.strip(), int(value) if value.isdecimal() else plain


def _opened(corpus: str) -> tagframe.Corpus:
    given: Mapping[str, Any] = click.get_current_context().meta
    if corpus.lower().endswith(".sql"):
        return tagframe.open_corpus(schema=corpus, hide=given["hide"])
    csv = dict(map(_option, given["csv"])) or None
    return tagframe.open_corpus(corpus, follow_links=given["follow_links"], csv=csv, hide=given["hide"])


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_k = click.option("-k", type=_Count(min=1), help='How many tables, or "auto": as many as the question needs.')
_method = click.option("--method", help='How tables are chosen: "dense", "jar:variant=F,as_printed", ….')
_lm = click.option("--lm", help='A litellm model name, or "replay:STORE" [env: TAGFRAME_LM].')
_api_base = click.option("--api-base", help="An OpenAI-compatible server [env: TAGFRAME_API_BASE].")
_store = click.option("--store", help="The response store's file [env: TAGFRAME_STORE].")


def _model(command: Callable[..., None]) -> Callable[..., None]:
    """A command that may ask a model, with the model's options."""
    return _lm(_api_base(_store(command)))


def _reaction(name: str, default: str, where: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    text = f"What to do if {where}."
    return click.option(name, type=click.Choice(["raise", "warn", "allow"]), default=default, help=text)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _show(result: Any, as_json: bool) -> None:
    """Print a result as text, or as one JSON object."""
    if as_json:
        _print_json(result.to_dict() if hasattr(result, "to_dict") else vars(result))
    else:
        click.echo(repr(result))


@main.command()
@_corpus
@_json
def tables(corpus: str, as_json: bool) -> None:
    """List the tables of CORPUS.

    Example: tagframe tables bank.sqlite
    """
    frame = _opened(corpus).tables
    if as_json:
        _print_json({"tables": frame.to_dict("records")})
    else:
        click.echo(frame.to_string(index=False, max_colwidth=60))


@main.command()
@_corpus
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The catalogue to write.")
def index(corpus: str, output: Path) -> None:
    """Profile and embed the tables of CORPUS into one catalogue file, which opens quickly.

    Example: tagframe index lake/ -o lake.catalogue
    """
    from tagframe.embed import get_embedder
    from tagframe.retrieval.index import index_of

    opened = _opened(corpus)
    index_of(opened, get_embedder())
    opened.save(output)
    click.echo(f"{counted(len(opened), 'table')} of {corpus} in {output}")


@main.command()
@_corpus
@click.argument("queries")
@click.option("--literals", is_flag=True, help="Keep the literals of statements (they are data).")
@click.option("--dialect", help='The SQL dialect of the statements, such as "snowflake" [default: the source\'s].')
@_json
def learn(corpus: str, queries: str, literals: bool, dialect: str | None, as_json: bool) -> None:
    """Learn from QUERIES that were run over CORPUS: a file or folder of SQL, CSV or JSON, or "views".

    Example: tagframe learn bank.sqlite queries.sql
    """
    from tagframe.learning import learn as learn_queries

    _show(learn_queries(_opened(corpus), queries, literals=literals, dialect=dialect), as_json)


@main.command()
@_corpus
@click.argument("descriptions", type=click.Path(path_type=Path))
@_json
def describe(corpus: str, descriptions: Path, as_json: bool) -> None:
    """Describe the tables and columns of CORPUS. DESCRIPTIONS is a CSV file with table, column and description, a
    semantic model (of Apache Ossie, or dbt's manifest.json), a folder of such files, or a folder with BIRD's
    database_description.

    \b
    Example: tagframe describe bank.sqlite dictionary.csv
    Example: tagframe describe warehouse.duckdb target/manifest.json
    """
    _show(_opened(corpus).describe(descriptions), as_json)


@main.command()
@_corpus
@_model
def annotate(corpus: str, **settings: str | None) -> None:
    """Let a model describe the tables and the cryptic columns of CORPUS.

    \b
    Example: a warehouse without rows; its prompts are exported and answered elsewhere
        tagframe index warehouse.sql -o warehouse.catalogue
        tagframe annotate warehouse.catalogue --lm replay:answers.db
        tagframe lm export answers.db -o prompts.jsonl
        tagframe lm import answers.db answered.jsonl
        tagframe annotate warehouse.catalogue --lm replay:answers.db
    """
    click.echo(repr(_opened(corpus).annotate(**_given(settings))))


@main.command()
@_corpus
@click.argument("question")
@_k
@_method
@_model
@_json
def retrieve(
    corpus: str,
    question: str,
    k: HowMany,
    method: str | None,
    as_json: bool,
    **settings: str | None,
) -> None:
    """Find the tables of CORPUS that answer QUESTION together, and how they join.

    Example: tagframe retrieve bank.sqlite "Which female account holders have a gold card?" -k 3
    """
    with config.context(**_given(settings)):
        retrieved = _opened(corpus).tables.tag.retrieve_tables(question, k=k, method=method)
    _show(retrieved, as_json)


@main.command()
@_corpus
@click.argument("tables", nargs=-1, required=True)
@click.option("--on", multiple=True,
              help='How they join: "loan.account_id = account.id"; in a role, "… as name" (repeatable).')  # fmt: skip
@click.option("--roles", type=click.Choice(["all"]), help="Join a table once for each column that refers to it.")
@click.option(
    "--how", type=click.Choice(["inner", "left", "right", "outer"]), default="inner", help="The kind of every join."
)
@click.option("--column", "columns", multiple=True, help="A column of the result (repeatable) [default: all].")
@click.option("--where", help="Keep only matching rows, such as \"amount > 100 and city == 'Brno'\".")
@click.option("--limit", type=click.IntRange(min=0), help="The largest number of rows.")
@click.option("--distinct", is_flag=True, help="Count rows that are exact copies once, except in the first table.")
@_reaction("--on-fanout", "raise", "rows of the first table would be repeated")
@_reaction("--on-loss", "warn", "rows of the first table have no partner")
@_reaction("--on-ambiguous", "warn", "other joins are equally likely")
@click.option("--min-chance", type=click.FloatRange(0, 1),
              help="The least chance of an inferred key that joins tables [default: .02].")  # fmt: skip
@click.option("--stack/--no-stack", default=True, help="Join tables like sales_2023 and sales_2024 as one table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the rows to this .csv or .parquet file.")
@_json
def merge(
    corpus: str,
    tables: tuple[str, ...],
    on: tuple[str, ...],
    roles: Literal["all"] | None,
    min_chance: float | None,
    columns: tuple[str, ...],
    stack: bool,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Join TABLES of CORPUS, and account for every row.

    Each row of the result is a row of the first table. If other tables would repeat those rows, the result has the
    rows of the first of TABLES that is not repeated, and a warning says so. With --how left the result always has the
    rows of the first table. Tables that connect the others are joined too. Without -o
    the rows are printed as CSV, and the report on standard error. With --json the report is printed instead, as one
    JSON object.

    Example: tagframe merge bank.sqlite loan client --how left -o loans.csv
    """
    from tagframe import results

    if output is not None and output.suffix.casefold() not in (".csv", ".parquet"):
        raise click.BadParameter(f"{output} is neither a .csv nor a .parquet file", param_hint="-o")
    if output is not None and not output.parent.is_dir():
        raise NotWritten(f"there is no folder {output.parent}: make it, or give another -o")
    opened = _opened(corpus)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = opened.merge(
            *tables, on=on or None, stack=stack, roles=roles, columns=columns or None, **options,
            **_given({"min_chance": min_chance}),
        )  # fmt: skip
    report = results.recall(frame, "merge_report")
    assert report is not None  # every merge has one
    remarks = [_as_options(str(warning.message)) for warning in caught]
    if output is not None:
        write = frame.to_parquet if output.suffix.casefold() == ".parquet" else frame.to_csv
        with writing("-o", output):
            write(output, index=False)
    if as_json:
        _print_json({**report.to_dict(), "columns": list(frame.columns), "output": output, "warnings": remarks})
        return
    if output is None:
        click.echo(frame.to_csv(index=False), nl=False)
    for text in remarks:
        click.echo(f"Warning: {text}", err=True)
    click.echo(repr(report), err=output is None)


@main.command()
@_corpus
@click.argument("question")
@click.option("--evidence", default="", help="What words of the question mean in these data, in a sentence.")
@_model
@_json
def ask(corpus: str, question: str, evidence: str, as_json: bool, **settings: str | None) -> None:
    """Answer QUESTION from the tables of CORPUS with a language model.

    Example: tagframe ask bank.sqlite "What do clients in Bohemia borrow for?" --lm openai/gpt-4o-mini
    """
    answer = tagframe.ask(question, _opened(corpus), evidence=evidence, **_given(settings))
    _show(answer, as_json)


@main.command()
@click.argument("source")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port of the page; 0 takes a free one.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
def look(source: str, port: int, browser: bool) -> None:
    """Show the tables of SOURCE, and how they join, on a local web page, until Ctrl-C.

    Example: tagframe look bank.sqlite
    """
    import webbrowser

    from tagframe.agents.page import look as show

    def say(address: str) -> None:
        click.echo(f"{address}\n(Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    show(tagframe.open_corpus(source), port, say)


@main.command()
@_corpus
@click.option("--baseline", type=click.Path(path_type=Path), required=True,
              help="The baseline, a JSON file without cells; it is created if it does not exist.")  # fmt: skip
@click.option("--bound", type=click.FloatRange(0, 1), help="How much a share or a row count may change [default: .1].")
@click.option("--accept", is_flag=True, help="Replace the baseline.")
@_json
def check(corpus: str, baseline: Path, bound: float | None, accept: bool, as_json: bool) -> None:
    """Compare CORPUS with its baseline: exit status 1 if a key, a table, a column or a profile has changed.

    Example: tagframe check bank.sqlite --baseline bank.json
    """
    from tagframe.evaluation import check as checked

    changes = checked(_opened(corpus), baseline, accept=accept, **_given({"bound": bound}))
    _show(changes, as_json)
    if changes.findings:
        click.get_current_context().exit(1)


@main.command("eval")
@_corpus
@click.argument("questions", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_k
@_model
@_json
def evaluate(corpus: str, questions: Path | None, k: HowMany, as_json: bool, **settings: str | None) -> None:
    """Measure retrieval over CORPUS on QUESTIONS, a CSV file with "question" and "sql" or "tables".

    The verified statements of CORPUS are tried, too.

    With --lm the model answers each question, and the rows of its answer are compared with those of the SQL.

    Example: tagframe eval bank.sqlite questions.csv -k 5
    """
    from tagframe.evaluation import evaluate as evaluated

    with config.context(**_given(settings)):
        evaluation = evaluated(_opened(corpus), questions, k=k or "auto", answers=settings["lm"] is not None)
    _show(evaluation, as_json)


@main.group()
def lm() -> None:
    """Models: what one can do; response stores: export requests, import answers, delete answers.

    \b
    Example: answer a replay's requests at a provider's batch price
        tagframe lm export answers.db -o batch.jsonl
        tagframe lm import answers.db output.jsonl
    """


_file = click.Path(dir_okay=False, path_type=Path)


@lm.command("export")
@click.argument("store", type=_file)
@click.option("-o", "--out", required=True, type=_file, help="The file to write.")
@click.option("--model", default="gpt-4o-mini", show_default=True, help="The model named in the requests.")
def export_requests(store: Path, out: Path, model: str) -> None:
    """Write the requests that lm="replay:STORE" did not find to a file in OpenAI's Batch format.

    \b
    Example:
        tagframe lm export answers.db -o batch.jsonl
    """
    from tagframe.lm import export_requests as exported

    click.echo(f"{counted(exported(store, out, model), 'request')} written to {out}")


@lm.command("import")
@click.argument("store", type=_file)
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--recorded-by", help="Who answered [default: the name in the file, else 'by hand'].")
def import_answers(store: Path, answers: Path, recorded_by: str | None) -> None:
    """Import ANSWERS into STORE: a provider's batch output, or lines {"custom_id": …, "answer": …}.

    \b
    Example:
        tagframe lm import answers.db output.jsonl
    """
    from tagframe.lm import import_answers as imported

    click.echo(str(imported(store, answers, recorded_by)))


@lm.command()
@click.argument("store", required=False, type=_file)
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Delete only what is older than this.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def purge(store: Path | None, older_than: float | None, yes: bool) -> None:
    """Delete the answers and missing requests of STORE; by default of the store in the cache folder.

    \b
    Example:
        tagframe lm purge --older-than 30
    """
    from tagframe.lm import default_path, open_store

    path = store or default_path()
    if not path.is_file():
        raise click.ClickException(f"no response store at {str(path)!r}")
    if not yes:
        click.confirm(f"Delete the stored answers in {path}?", abort=True)
    before = None if older_than is None else time.time() - older_than * 86_400
    click.echo(f"{counted(open_store(path).purge(before), 'answer')} deleted from {path}")


@lm.command("check")
@click.argument("model", required=False)
@_lm
@_api_base
@_json
def check_lm(model: str | None, as_json: bool, **settings: str | None) -> None:
    """Find out what MODEL and its server can do, by about a dozen small requests; by default the configured model.

    The exit status is 1 if it cannot be used.

    \b
    Example:
        tagframe lm check ollama/llama3.2
    """
    from tagframe.evaluation import check_lm as checked

    with config.context(**_given(settings | ({"lm": model} if model else {}))):
        checks = checked()
    _show(checks, as_json)
    if not checks.ok:
        click.get_current_context().exit(1)


@main.command()
@click.option("--remove", multiple=True, metavar="NAME", help="Remove the files listed under this name (repeatable).")
@_json
def cache(remove: tuple[str, ...], as_json: bool) -> None:
    """List the files that tagframe keeps on this machine, and remove those that can be made again.

    Example: tagframe cache --remove catalogues
    """
    from tagframe.storage import remove_stored, stored_files

    for name in remove:
        remove_stored(name)
    files = stored_files()
    if as_json:
        _print_json([vars(one) for one in files])
    for one in () if as_json else files:
        click.echo(f"{one.name:<14}{one.bytes / 1e6:>9,.1f} MB in {one.files:,} files: {one.place}\n  {one.what}")


@main.command()
@click.argument("sources", nargs=-1, required=True)
@click.option("--to", type=click.Path(path_type=Path), help="The folder for new Parquet files.")
@click.option("--ask", is_flag=True, help="Let the model answer questions, within --budget.")
@click.option("--learn", is_flag=True, help="Let agents save statements as answers to questions.")
@click.option(
    "--budget", type=click.FloatRange(min=0), help="The most that the model may cost in this run, in dollars."
)
@click.option("--follow-links", **_LINKS)
@click.option("--refresh", type=click.FloatRange(min=0), metavar="SECONDS",
              help="Open the sources again before a call if that was so long ago.")  # fmt: skip
@click.option("--hide", **_HIDE)
@click.option(
    "--readers", type=click.Path(path_type=Path), help="The file with what is hidden from each reader; read again."
)
@click.option("--reader", help="Serve only what this reader of --readers sees.")
@click.option("--http", is_flag=True, help="Serve over HTTP, to clients that send a reader's token.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address at which to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Its port; 0 for any.")
@click.option("--url", multiple=True, help="Another address of the server, as behind a proxy (repeatable).")
@click.option(
    "--token-from",
    multiple=True,
    metavar="[READER=]VARIABLE",
    help="The environment variable with a reader's token (repeatable); by default a token is made and printed.",
)
@_model
def mcp(sources: tuple[str, ...], lm: str | None, api_base: str | None, store: str | None, **options: Any) -> None:
    """Serve SOURCES to agents over the Model Context Protocol, on standard input and output or over HTTP.

    A source is a file, a folder, a catalogue or the URL of a server. Sources are never written to.

    Example: tagframe mcp bank.sqlite --to exports/
    """
    from tagframe.agents.command import serve

    with config.context(**_given({"lm": lm, "api_base": api_base, "store": store})):
        serve(sources, **options)


def _given(settings: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


if __name__ == "__main__":
    main()
