"""Keys between tables: pairs of columns with the same meaning, each with a chance and its evidence."""

from tagframe.keys.database_keys import evidence_share
from tagframe.keys.inference import infer_key_pairs
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.unions import infer_unions

__all__ = ["Evidence", "KeyPair", "evidence_share", "infer_key_pairs", "infer_unions"]
