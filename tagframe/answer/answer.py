"""An answer, with what it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.answer.query import Query

if TYPE_CHECKING:
    from tagframe.merging import MergeReport
    from tagframe.retrieval import RetrievedTables


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        question: as asked.
        text: the answer itself.
        rows: the rows that it was written from, after the SQL and all operators but a last ``sem_agg``.
        query: what ``syn`` wrote.
        retrieved: the tables, why each was chosen, and how they join.
        merge_report: what the merge did to the rows; None where SQL did the joining.
    """

    question: str
    text: str
    rows: pd.DataFrame
    query: Query
    retrieved: RetrievedTables = field(repr=False)
    merge_report: MergeReport | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        steps = [self.query.sql or "the merged tables", *map(str, self.query.operators)]
        tables = ", ".join(hit.id for hit in self.retrieved.tables)
        return f"{self.text}\n\nfrom {len(self.rows)} rows of {tables}\nby {' → '.join(steps)}"

    def to_dict(self, rows: int = 20) -> dict[str, Any]:
        """As it stands in JSON, with the first ``rows`` rows."""
        return {
            "question": self.question,
            "answer": self.text,
            **{name: value for name, value in self.retrieved.to_dict().items() if name != "question"},
            "query": self.query.to_dict(),
            "row_count": len(self.rows),
            "rows": self.rows.head(rows).to_dict("records"),
        }
