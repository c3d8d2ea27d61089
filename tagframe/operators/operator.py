"""What an operator is: a record, from which quotes, ``tf.ask`` and the tests know it."""

from __future__ import annotations

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
        fits_window: whether it has a keyword ``window`` for the tokens that the model takes in one request.
    """

    name: str
    steps: Callable[..., Step[pd.DataFrame]]
    guess: Callable[[Prompt], str]
    fits_window: bool = False

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
