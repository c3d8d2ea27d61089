"""Which columns are keys: pairs of columns that say the same thing, each with a chance and what speaks for it."""

from tagframe.keys.inference import given_keys, infer_key_pairs
from tagframe.keys.key_pair import Evidence, KeyPair
from tagframe.keys.scoring import evidence_share
from tagframe.keys.unions import UnionGroup, infer_unions

__all__ = ["Evidence", "KeyPair", "UnionGroup", "evidence_share", "given_keys", "infer_key_pairs", "infer_unions"]
