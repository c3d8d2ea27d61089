"""The published figures of TAG-Bench (Biswal et al., CIDR 2025, tables 1 and 2), for comparison with ours.

They are for an earlier answer key, for all 80 questions and for Llama 3.1 (70B), which every output says. Exact match
is in percent, times are seconds per question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("overall", "match", "comparison", "ranking", "knowledge", "reasoning")
PUBLISHED: Mapping[str, tuple[tuple[float, ...], float]] = {
    "text2sql": ((17, 20, 20, 10, 20, 10), 5.63),
    "rag": ((0, 0, 0, 0, 0, 0), 3.23),
    "rerank": ((2, 0, 5, 0, 3, 0), 4.82),
    "text2sql_lm": ((13, 10, 10, 20, 10, 20), 9.08),
    "handwritten": ((55, 60, 65, 40, 53, 60), 2.94),
}
"""By method: exact match by :data:`COLUMNS`, and the mean execution time."""
NOTE = "published: other questions (all 80, an earlier key) and a weaker model (Llama 3.1 70B)"
"""The caveat for comparing both."""


def ours(summary: Mapping[str, Any], mark: str) -> tuple[float | None, ...]:
    """Our shares by :data:`COLUMNS`; None if no such question was asked."""
    groups = {"overall": summary["overall"], **summary["by_type"], **summary["by_kind"]}
    return tuple(groups[name][mark] if name in groups else None for name in COLUMNS)


def table(method: str, summary: Mapping[str, Any], repaired: Mapping[str, Any] | None = None) -> str:
    """Our figures and the published ones, in the form of the paper's tables 1 and 2.

    Args:
        method: its name.
        summary: of its records.
        repaired: of its records with repaired statements, for the Text2SQL baselines.
    """
    overall = summary["overall"]
    lines = [f"{'exact match (%)':<34}" + "".join(f"{name:>12}" for name in COLUMNS) + f"{'seconds':>10}"]
    for mark in ("strict", "strict_here", "tolerant", "tolerant_here"):
        name = f"ours, {method}, {mark.replace('_', ' ')}"
        lines.append(_line(name, ours(summary, mark), overall["seconds"]))
    if repaired is not None:
        for mark in ("strict", "strict_here"):
            name = f"{mark.replace('_', ' ')}, repaired"
            lines.append(_line(f"{method}, {name}", ours(repaired, mark), repaired["overall"]["seconds"]))
        if lacking := repaired["overall"]["missing"] - overall["missing"]:
            lines.append(f"of {lacking} repairs the model's answers are missing: these questions are not counted above")
    for name, (shares, seconds) in PUBLISHED.items():
        lines.append(_line(f"published, {name}", shares, seconds))
    lines.append(NOTE)
    asked = overall["questions"]
    if not asked:
        return "\n".join([*lines, "no question was asked"])
    told = f"{asked} questions asked, {overall['with_key']} with a key, {overall['errors']} ended with an error"
    for fact, count in (("lack answers of the model", "missing"), ("warned", "warned")):
        told += f", {overall[count]} {fact}" if overall[count] else ""
    lines.append(told)
    if overall["missing"]:
        return "\n".join([*lines, "the cost per question is not known while answers are missing"])
    lines.append(_cost("asked", overall["calls"], overall["tokens"], asked, overall["calls_median"]))
    lines.append(_cost("a call a row, as LOTUS asks", overall["rows_asked"], overall["tokens_by_row"], asked))
    return "\n".join(lines)


def _cost(name: str, calls: int, tokens: int | None, questions: int, median: float | None = None) -> str:
    told = "" if median is None else f", median {median:g}"
    each = "unknown tokens" if tokens is None else f"{tokens / questions:,.0f} tokens"
    all = "" if tokens is None else f", {tokens:,} tokens"
    return f"{name:<34}{calls / questions:.1f} calls{told}, {each} a question ({calls:,} calls{all} in all)"


def _line(name: str, shares: tuple[float | None, ...], seconds: float | None) -> str:
    cells = "".join(f"{'-' if share is None else f'{share:.1f}':>12}" for share in shares)
    return f"{name:<34}{cells}{'-' if seconds is None else f'{seconds:.2f}':>10}"
