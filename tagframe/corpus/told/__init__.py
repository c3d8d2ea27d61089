"""What a user, a log or a model told about the tables of a corpus."""

from tagframe.corpus.references import ToldKey
from tagframe.corpus.told.facts import BY_MODEL, LONGEST, FactKey, Knowledge, Told, as_description, checked_fact

__all__ = ["BY_MODEL", "LONGEST", "FactKey", "Knowledge", "Told", "ToldKey", "as_description", "checked_fact"]
