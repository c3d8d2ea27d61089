"""Learning from past queries over a corpus: its keys, which tables are read, and for which questions."""

from tagframe.learning.learn import Learned, forget, learn, tell

__all__ = ["Learned", "forget", "learn", "tell"]
