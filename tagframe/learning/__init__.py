"""What queries that were run say of a corpus: its keys, which of its tables are read, and for which questions."""

from tagframe.learning.learn import Learned, forget, learn, tell

__all__ = ["Learned", "forget", "learn", "tell"]
