"""``tag_bench bench``: runs the parts of ``docs/benchmarks.md``, and writes the page from their results.

``tag_bench/page/benchmarks.md`` is the page with its commands, without figures. A line ``<!-- part NAME: COMMAND -->``
is a part: a command, whose result is ``bench/results/NAME.json``. ``{NAME PATH}`` is a figure of it, ``{NAME PATH: KEY
KEY}`` are several with slashes between them, and ``|FORMAT`` is their format. All figures on the page are of one commit
and one machine, those of the newest result: rows of tables, items of lists, paragraphs, and at last sections without
such figures are left out. ``readme.md`` beside it has the figures of the README in the same way.
"""

from __future__ import annotations

import datetime
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tag_bench import FOLDER, LazyGroup
from tag_bench.records import commit, machine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
WORK = ROOT / "bench" / "unfinished"
"""What a part that was ended goes on from."""
PAGE, README = (Path(__file__).with_name("page") / name for name in ("benchmarks.md", "readme.md"))
DATA = "DIR"
"""Stands for the folder of ``--data`` in commands."""

_PART = re.compile(r"^<!-- part ([\w-]+): (.+) -->$", re.MULTILINE)
_FIGURE = re.compile(r"\{([\w-]+) ([^{}|:]+)(?:: ?([^{}|]+))?(?:\|([^{}]+))?\}")
_ABOUT = ("commit", "date", "machine")
_BULLETS = re.compile(r"(?:^- .+\n)+", re.MULTILINE)

Results = Mapping[str, Mapping[str, Any]]
"""The content of the result files, by part."""


def parts(template: str) -> dict[str, str]:
    """The commands by the names of their parts."""
    return dict(_PART.findall(template))


def run(name: str, command: str, data: Path, at: str, folder: Path = RESULTS, work: Path = WORK) -> bool:
    """Run a part, unless its result is there already; whether it did not fail.

    Args:
        name: of the part.
        command: its line; ``DIR`` stands for ``data``.
        data: the folder of the data sets.
        at: the commit.
        folder: of the results.
        work: of records and evidence, from which a run that was ended goes on.
    """
    file = folder / f"{name}.json"
    if file.is_file():
        known = json.loads(file.read_text(encoding="utf-8"))
        if (known["commit"], known["command"], known["machine"]) == (at, command, machine()):
            click.echo(f"{name}: there already", err=True)
            return True
    click.echo(f"{name}: {command}", err=True)
    words = [word.replace(DATA, str(data), 1) if word.split("/")[0] == DATA else word for word in shlex.split(command)]
    program = [sys.executable if words[0] == "python" else str(ROOT / words[0]), *words[1:]]
    code = commit()
    done = subprocess.run([*program, *_goes_on(name, words, at, work)], stdout=subprocess.PIPE, cwd=ROOT, check=False)
    text = done.stdout.decode("utf-8").replace(str(data), DATA)  # paths of this machine stay with it
    if done.returncode:
        click.echo(f"{name}: ended with status {done.returncode}, see above", err=True)
        return False
    if commit() != code:
        click.echo(f"{name}: the code was changed while it ran, so there is no figure", err=True)
        return False
    try:
        printed = json.loads(text)
    except ValueError:
        printed = {"printed": text.rstrip()}
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    folder.mkdir(parents=True, exist_ok=True)
    made = {**_counted(printed), "commit": at, "date": date, "machine": machine(), "command": command}
    part = file.with_suffix(".new")
    part.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(file)
    return True


def _counted(printed: Any) -> Any:
    """What was printed; of lists of names and of questions their lengths, since what data sets hold stays with them."""
    if isinstance(printed, dict):
        return {key: len(one) if _names(key, one) else _counted(one) for key, one in printed.items()}
    return [*map(_counted, printed)] if isinstance(printed, list) else printed


def _names(key: str, printed: Any) -> bool:
    return isinstance(printed, list) and (key == "questions" or any(isinstance(one, str) for one in printed))


def _goes_on(name: str, words: list[str], at: str, work: Path) -> Iterator[str]:
    """The options with which a command of ours goes on where it was ended."""
    if words[1:3] != ["-m", "tag_bench"]:
        return
    found: Any = LazyGroup("tag_bench", Path(__file__).parent, "").get_command(click.Context(click.Group()), words[3])
    options = {parameter.name for parameter in found.params}
    work.mkdir(parents=True, exist_ok=True)
    if "records" in options and "--recorded" not in words:
        yield from ("--records", str(work / f"{at}-{name}.jsonl"))
    if words[3] == "fit":
        yield from ("--cache", str(work / "cache"))


def read_results(folder: Path = RESULTS) -> dict[str, Mapping[str, Any]]:
    """The results that are of the commit and the machine of the newest one."""
    every = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
    newest: Mapping[str, Any] = max(every.values(), key=lambda one: str(one["date"]), default={})
    same = ("commit", "machine")
    return {name: one for name, one in every.items() if all(one[key] == newest[key] for key in same)}


def figure(result: Any, path: str, keys: str | None = None, form: str | None = None) -> str:
    """A figure as text; entries of a list are found by their ``name`` or their position.

    >>> figure({"all": {"2": {"R": 93.25, "CR": 100.0}}}, "all.2", "R CR"), figure({"off": 0.031}, "off", form=".2f")
    ('93.2 / 100', '.03')
    """
    for key in path.split("."):
        if isinstance(result, list):
            result = (
                next((one for one in result if isinstance(one, dict) and one.get("name") == key), None)
                or (result[int(key)])
            )
        else:
            result = result[key]
    if keys is not None:
        return " / ".join(figure(result, key, form=form) for key in keys.split())
    if form is not None:
        return re.sub(r"^(-?)0\.", r"\1.", format(result, form))
    if isinstance(result, float):
        return "100" if result == 100 else f"{result:.1f}"
    return f"{result:,}" if isinstance(result, int) else str(result)


class Lacking(Exception):
    """A part has no result at the commit of the page."""


def filled(text: str, results: Results) -> str:
    """A text with its figures.

    Raises:
        Lacking: a part has not been run.
        click.ClickException: a part has no such figure.
    """

    def one(match: re.Match[str]) -> str:
        name, path, keys, form = match.groups()
        if name not in results:
            raise Lacking(name)
        try:
            return figure(results[name], path, keys, form)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise click.ClickException(f"{name}.json has no figure {match[0]}: {error!r}") from error

    return _FIGURE.sub(one, text)


def page(template: str, results: Results) -> str:
    """The page: the template with all figures that there are, without what lacks them."""
    about = next(iter(results.values()), dict.fromkeys(_ABOUT, "none"))
    date = max((str(one["date"]) for one in results.values()), default="none")
    for name, value in {**{key: str(about[key]) for key in _ABOUT}, "date": date[:10]}.items():
        template = template.replace(f"{{{name}}}", value)
    sections: list[str] = []
    for section in reversed(re.split(r"(?m)^(?=#+ )", template)):
        blocks = [_block(block, results) for block in section.strip().split("\n\n")]
        following = [block for block, _ in blocks[1:]] + ["the end"]
        blocks = [one for one, then in zip(blocks, following, strict=True) if then or not one[0].endswith(":")]
        if (_PART.search(section) or _FIGURE.search(section)) and not any(has_figures for _, has_figures in blocks):
            blocks = blocks[:1]  # the heading, for what stands under it
        is_empty = len(blocks) == 1 and section.startswith("#")
        if not is_empty or (sections and _depth(sections[-1]) > _depth(section)):
            sections.append("\n\n".join(block for block, _ in blocks if block))
    return "\n\n".join(filter(None, reversed(sections))) + "\n"


def _depth(section: str) -> int:
    return len(section) - len(section.lstrip("#"))


def _block(block: str, results: Results) -> tuple[str, bool]:
    """A paragraph, list or table with its figures ("" if it lacks them), and whether it has any."""
    if not (_PART.search(block) or _FIGURE.search(block)):
        return block, False
    is_table, is_list = block.startswith("|"), block.startswith(("- ", "<!-- part"))
    lines = block.splitlines() if is_table else re.split(r"\n(?=- |<!-- part)", block) if is_list else [block]
    filled_lines, figures = [], 0
    for line in lines:
        if part := _PART.match(line):
            if part[1] in results:
                filled_lines.append(f"- `{part[2]}`")
                figures += 1
            continue
        try:
            filled_lines.append(filled(line, results))
            figures += bool(_FIGURE.search(line))
        except Lacking:
            continue
    return ("\n".join(filled_lines), True) if figures else ("", False)


def write(results: Results) -> None:
    """Write ``docs/benchmarks.md``, and the figures of the README."""
    (ROOT / "docs" / "benchmarks.md").write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    readme = ROOT / "README.md"
    head, title, rest = readme.read_text(encoding="utf-8").partition("## Benchmarks\n")
    figures = page(README.read_text(encoding="utf-8"), results)
    if figures.strip():
        readme.write_text(head + title + _BULLETS.sub(lambda _: figures, rest, count=1), encoding="utf-8")


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[PART]...")
@click.option("--data", type=FOLDER, help="The folder of the data sets.")
@click.option("--list", "lists", is_flag=True, help="Print the parts and their commands.")
def command(names: tuple[str, ...], data: Path | None, lists: bool) -> None:
    """Run the parts of docs/benchmarks.md (all take hours), a JSON file in bench/results each.

    A part that was run at this commit on this machine is not run again. Without --data, docs/benchmarks.md and the
    figures of the README are written from the results. Example: python -m tag_bench bench --data DIR retrieval-bird
    """
    known = parts(PAGE.read_text(encoding="utf-8"))
    if unknown := [name for name in names if name not in known]:
        raise click.ClickException(f"no part {', '.join(unknown)}; there are {', '.join(known)}")
    if lists:
        for name, line in known.items():
            click.echo(f"{name}: {line}")
        return
    if data is None:
        write(read_results())
        return
    at = commit()
    if at is None or at.endswith("-dirty"):
        raise click.ClickException(f"figures are of a commit, and this tree is {at or 'no clone'}; commit first")
    if failed := [name for name in names or known if not run(name, known[name], data.resolve(), at)]:
        raise click.ClickException(f"failed: {', '.join(failed)}")
