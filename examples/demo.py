"""The main job, from a question to an answer, over the tables of ``examples/data``.

Run it with ``make demo``. Without a model it replays the answers of ``examples/answers.jsonl``;
``TAGFRAME_LM=model make demo`` asks a live model.
"""

from __future__ import annotations

import os
import tempfile
import textwrap
from pathlib import Path

import pandas as pd

import tagframe as tf
from tagframe.lm import import_answers, recorded_by

HERE = Path(__file__).parent
QUESTION = (
    "What do newspaper critics praise in their reviews of films of the romance genre, and which directors made them?"
)
SECOND_QUESTION = "Which venue's city sold the most tickets for films by directors from Portugal?"


def main() -> None:
    """Answer with a live model if the environment names one, else from the recorded answers."""
    pd.set_option("display.width", 140, "display.max_colwidth", 60)
    with tempfile.TemporaryDirectory() as scratch:
        tf.configure(lm=os.environ.get("TAGFRAME_LM") or recorded(Path(scratch)), progress=False)
        run()


def recorded(scratch: Path) -> str:
    """Import the recorded answers into a store; gives the name of a model that replays it."""
    store = scratch / "answers.sqlite"
    import_answers(store, HERE / "answers.jsonl")
    print(f"No model is called: the answers below were recorded from {', '.join(recorded_by(store))},")
    print("and are in examples/answers.jsonl.")
    print("To use a live model: TAGFRAME_LM=openai/gpt-4o-mini make demo")
    return f"replay:{store}"


def run() -> None:
    """Retrieve, merge, filter, rank and summarise, then the same in one call of ``tf.ask``."""
    heading("The tables: two databases of CSV files, no keys declared")
    corpus = tf.open_corpus(HERE / "data")
    print(corpus.tables[["id", "rows", "column_names"]].to_string(index=False))

    heading(f"retrieve_tables({QUESTION!r})")
    found = corpus.tables.tag.retrieve_tables(QUESTION, k=5)
    print(found)

    heading("merge()")
    frame = found.merge()
    print(f"{len(frame)} rows, {len(frame.columns)} columns: {', '.join(frame.columns)}\n")
    print(frame.tag.merge_report)

    heading("""query(…).tag.sem_filter("{review} praises the film more than it finds fault")""")
    romance = frame.query("genre == 'Romance' and outlet_kind == 'newspaper'")
    praise = romance.tag.sem_filter("{review} praises the film more than it finds fault")
    print(praise[["title", "director", "critic", "review"]].to_string(index=False))

    heading("""sem_topk("Which {review} is the most moved?", K=3)""")
    moved = praise.tag.sem_topk("Which {review} is the most moved?", K=3)
    print(moved[["title", "critic", "review"]].to_string(index=False))

    heading("""sem_agg("What do the critics praise, according to each {review} of {title} by {director}?")""")
    summary = praise.tag.sem_agg("What do the critics praise, according to each {review} of {title} by {director}?")
    print(textwrap.fill(summary["_output"].iloc[0], 120))
    print("\nsummary.tag.sources:")
    print(summary.tag.sources[["answer", "review_id", "title", "director", "critic"]].to_string(index=False))

    heading(f"tf.ask({SECOND_QUESTION!r})")
    answer = tf.ask(SECOND_QUESTION, corpus)
    print(repr(answer))
    print(f"\nanswer.values: {answer.values}")
    print(answer.rows.to_string(index=False))


def heading(text: str) -> None:
    """Print a heading, in bold on a terminal."""
    print(f"\n\033[1m# {text}\033[0m" if os.isatty(1) else f"\n# {text}")


if __name__ == "__main__":
    main()
