"""The ``tagframe`` command: each subcommand a call into one room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import tagframe
from tagframe import config
from tagframe.errors import TagframeError


class _Group(click.Group):
    """Subcommands of rooms that are slow to import are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), "lm"})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "lm":
            from tagframe.lm.commands import lm

            return lm
        return super().get_command(ctx, name)

    def invoke(self, ctx: click.Context) -> Any:
        # An error of ours says the fact and the way out; a traceback would bury both.
        try:
            return super().invoke(ctx)
        except TagframeError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tagframe.__version__)
def main() -> None:
    """Find the tables that answer a question together, join them, and answer it.

    CORPUS is a SQLite file, a folder of SQLite, CSV and Parquet files (a subfolder is a database), or a catalogue that
    "tagframe index" wrote.
    """


_corpus = click.argument("corpus", type=click.Path(path_type=Path))
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
_k = click.option("-k", type=click.IntRange(min=1), help="Tables at most.")
_method = click.option("--method", help='How tables are chosen: "greedy", "dense", ….')
_lm = click.option("--lm", help='A litellm model name, or "replay:STORE" [env: TAGFRAME_LM].')
_api_base = click.option("--api-base", help="An OpenAI-compatible server [env: TAGFRAME_API_BASE].")
_store = click.option("--store", help="The response store's file [env: TAGFRAME_STORE].")


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


@main.command()
@_corpus
@_json
def tables(corpus: Path, as_json: bool) -> None:
    """List the tables of CORPUS.

    Example: tagframe tables bank.sqlite
    """
    frame = tagframe.open_corpus(corpus).tables
    if as_json:
        _print_json({"tables": frame.to_dict("records")})
    else:
        click.echo(frame.to_string(index=False, max_colwidth=60))


@main.command()
@_corpus
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The catalogue to write.")
def index(corpus: Path, output: Path) -> None:
    """Profile and embed the tables of CORPUS into one catalogue file, which opens at once.

    Example: tagframe index lake/ -o lake.catalogue
    """
    from tagframe.embed import get_embedder
    from tagframe.retrieval.index import index_of

    opened = tagframe.open_corpus(corpus)
    index_of(opened, get_embedder())
    opened.save(output)
    click.echo(f"{len(opened)} tables of {corpus} in {output}")


@main.command()
@_corpus
@click.argument("question")
@_k
@_method
@_lm
@_api_base
@_store
@_json
def retrieve(
    corpus: Path, question: str, k: int | None, method: str | None, as_json: bool, **settings: str | None
) -> None:
    """Find the tables of CORPUS that answer QUESTION together, and how they join.

    Example: tagframe retrieve bank.sqlite "Which female account holders have a gold card?" -k 3
    """
    with config.context(**_given(settings)):
        found = tagframe.open_corpus(corpus).tables.tag.retrieve_tables(question, k=k, method=method)
    if as_json:
        _print_json(found.to_dict())
    else:
        click.echo(repr(found))


@main.command()
@_corpus
@click.argument("question")
@_k
@_method
@_lm
@_api_base
@_store
@_json
def ask(corpus: Path, question: str, k: int | None, method: str | None, as_json: bool, **settings: str | None) -> None:
    """Answer QUESTION from the tables of CORPUS with a language model.

    Example: tagframe ask bank.sqlite "What do clients in Bohemia borrow for?" --lm openai/gpt-4o-mini
    """
    answer = tagframe.ask(question, tagframe.open_corpus(corpus), k=k, method=method, **_given(settings))
    if as_json:
        _print_json(answer.to_dict())
    else:
        click.echo(repr(answer))


def _given(settings: dict[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


if __name__ == "__main__":
    main()
