"""How right a corpus' answers are on questions of one's own, and whether its data is still what it was."""

from tagframe.evaluation.check import Check, check
from tagframe.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Check", "Evaluation", "check", "evaluate"]
