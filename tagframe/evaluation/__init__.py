"""How right answers are on the user's own questions, what has changed since a baseline, and what a model can do."""

from tagframe.evaluation.check import Check, check
from tagframe.evaluation.check_lm import LMCheck, check_lm
from tagframe.evaluation.evaluate import Evaluation, evaluate

__all__ = ["Check", "Evaluation", "LMCheck", "check", "check_lm", "evaluate"]
