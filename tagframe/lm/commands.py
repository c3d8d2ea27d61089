"""``tagframe lm …``: response stores from a shell."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from tagframe.errors import TagframeError, counted
from tagframe.lm.replay import BATCH_MODEL, export_requests, import_answers
from tagframe.lm.store import default_path, open_store

_STORE = click.argument("store", type=click.Path(dir_okay=False, path_type=Path))


class _Stores(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (TagframeError, OSError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Stores)
def lm() -> None:
    """Response stores: export requests, import answers, delete answers.

    \b
    Example: answer a replay's requests at a provider's batch price
        tagframe lm export answers.db -o batch.jsonl
        tagframe lm import answers.db output.jsonl
    """


@lm.command("export")
@_STORE
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--model", default=BATCH_MODEL, show_default=True, help="The model named in the requests.")
def export_command(store: Path, out: Path, model: str) -> None:
    """Write the requests that lm="replay:STORE" did not find to a file in OpenAI's Batch format.

    \b
    Example:
        tagframe lm export answers.db -o batch.jsonl
    """
    count = export_requests(store, out, model)
    click.echo(f"{counted(count, 'request')} written to {out}")


@lm.command("import")
@_STORE
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--recorded-by", help="Who answered [default: the name in the file, else 'by hand'].")
def import_command(store: Path, answers: Path, recorded_by: str | None) -> None:
    """Import ANSWERS into STORE: a provider's batch output, or lines {"custom_id": …, "answer": …}.

    \b
    Example:
        tagframe lm import answers.db output.jsonl
    """
    click.echo(str(import_answers(store, answers, recorded_by)))


@lm.command("purge")
@click.argument("store", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Delete only what is older than this.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def purge_command(store: Path | None, older_than: float | None, yes: bool) -> None:
    """Delete the answers, missing requests and log of STORE; by default of the store in the cache folder.

    \b
    Example:
        tagframe lm purge --older-than 30
    """
    path = store or default_path()
    if not path.is_file():
        raise click.ClickException(f"no response store at {str(path)!r}")
    if not yes:
        click.confirm(f"Delete the stored answers in {path}?", abort=True)
    before = None if older_than is None else time.time() - older_than * 86_400
    count = open_store(path).purge(before)
    click.echo(f"{counted(count, 'answer')} deleted from {path}")
