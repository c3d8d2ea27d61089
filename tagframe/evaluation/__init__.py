"""The quality of a corpus' answers on the user's own questions, and changes of its data since a baseline."""

from tagframe.evaluation.check import Check, check
from tagframe.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Check", "Evaluation", "check", "evaluate"]
