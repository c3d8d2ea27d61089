"""What an operator is: a record, from which quotes, ``tf.ask`` and the tests know it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from tagframe.operators.drivers import quote, run
from tagframe.operators.steps import Step

if TYPE_CHECKING:
    from tagframe.lm import LM, Prompt, Quote


@dataclass(frozen=True)
class Operator:
    """A semantic operator; :data:`tagframe.operators.OPERATORS` lists all of them.

    Attributes:
        name: as in ``df.tag.NAME``, ``tf.NAME``, ``tf.aNAME`` and ``df.tag.quote.NAME``.
        steps: ``steps(frame, instruction, …)``, the generator that does it; what follows are the operator's keywords.
        guess: an answer to one of its prompts such as a model would give, for quotes; a batch's own guess
            goes before it.
        told: what its instruction is, as syn's prompt says it.
        takes_k: whether it needs ``K``, the number of rows to keep.
        ends: whether it makes one text of all rows, so that in a query of syn it can only stand last.
        fits_window: whether it has a keyword ``window`` for the tokens that the model takes in one request.
        in_syn: whether a query of syn may hold it.
    """

    name: str
    steps: Callable[..., Step[pd.DataFrame]]
    guess: Callable[[Prompt], str]
    told: str
    takes_k: bool = False
    ends: bool = False
    fits_window: bool = False
    in_syn: bool = True

    @property
    def example(self) -> str:
        """A call of it in a query of syn, as a JSON object."""
        return json.dumps({"name": self.name, "instruction": self.told, **({"K": 3} if self.takes_k else {})})

    def step(self, lm: LM, frame: pd.DataFrame, *arguments: Any, **options: Any) -> Step[pd.DataFrame]:
        """The operator as a step, fitted to the model; ``arguments`` are those of :attr:`steps` after the frame."""
        if self.fits_window:
            options["window"] = getattr(lm, "context_window", None)
        return self.steps(frame, *arguments, **options)

    def quote(self, lm: LM, frame: pd.DataFrame, *arguments: Any, **options: Any) -> Quote:
        """What it would cost."""
        return quote(self.step(lm, frame, *arguments, **options), lm, self.guess)

    def run(self, lm: LM, frame: pd.DataFrame, *arguments: Any, **options: Any) -> pd.DataFrame:
        """The operator's result; the thread waits for it."""
        return run(self.step(lm, frame, *arguments, **options), lm, self.name)
