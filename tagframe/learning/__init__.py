"""Learning from past queries over a corpus: its keys, which tables are read, and for which questions."""

from tagframe.learning.learn import Learned, add_statements, forget, learn

__all__ = ["Learned", "add_statements", "forget", "learn"]
