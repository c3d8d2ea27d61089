"""Our figures beside the published ones of TAG-Bench (Biswal et al., CIDR 2025, tables 1 and 2).

Those are for an earlier answer key, for all 80 questions and for Llama 3.1 (70B), which every output says. Exact match
is in percent, times are seconds per question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tag_bench.published import PUBLISHED, figure_text, text_table

COLUMNS = ("overall", "match", "comparison", "ranking", "knowledge", "reasoning")
NOTE = "published: other questions (all 80, an earlier key) and a weaker model (Llama 3.1 70B)"
"""The caveat for comparing both."""


def table(method: str, summary: Mapping[str, Any], repaired: Mapping[str, Any] | None = None) -> str:
    """Our figures and the published ones, in the form of the paper's tables 1 and 2.

    Args:
        method: its name.
        summary: of its records.
        repaired: of its records with repaired statements, for the Text2SQL baselines.
    """
    overall, rows, notes = summary["overall"], {}, [NOTE]
    for mark in ("strict", "strict_here", "tolerant", "tolerant_here"):
        rows[f"ours, {method}, {mark.replace('_', ' ')}"] = _ours(summary, mark)
    if repaired is not None:
        for mark in ("strict", "strict_here"):
            rows[f"{method}, {mark.replace('_', ' ')}, repaired"] = _ours(repaired, mark)
        if lacking := repaired["overall"]["missing"] - overall["missing"]:
            notes.append(f"of {lacking} repairs the model's answers are missing: these questions are not counted above")
    for name, of_method in PUBLISHED["answers"].items():
        rows[f"published, {name}"] = _cells(of_method["shares"], of_method["seconds"])
    lines = [text_table("exact match (%)", [*COLUMNS, "seconds"], rows), *notes]
    questions = overall["questions"]
    if not questions:
        return "\n".join([*lines, "no question was asked"])
    figures = f"{questions} questions asked, {overall['with_key']} with a key, {overall['errors']} ended with an error"
    for fact, count in (("lack answers of the model", "missing"), ("warned", "warned")):
        figures += f", {overall[count]} {fact}" if overall[count] else ""
    lines.append(figures)
    if overall["missing"]:
        return "\n".join([*lines, "the cost per question is not known while answers are missing"])
    lines.append(_cost("asked", overall["calls"], overall["tokens"], questions, overall["calls_median"]))
    lines.append(_cost("a call a row, as LOTUS asks", overall["rows_asked"], overall["tokens_by_row"], questions))
    return "\n".join(lines)


def _ours(summary: Mapping[str, Any], mark: str) -> list[str]:
    groups = {"overall": summary["overall"], **summary["by_type"], **summary["by_kind"]}
    return _cells([groups.get(name, {}).get(mark) for name in COLUMNS], summary["overall"]["seconds"])


def _cells(shares: Sequence[float | None], seconds: float | None) -> list[str]:
    return [*map(figure_text, shares), figure_text(seconds, ".2f")]


def _cost(name: str, calls: int, tokens: int | None, questions: int, median: float | None = None) -> str:
    at_median = "" if median is None else f", median {median:g}"
    each = "unknown tokens" if tokens is None else f"{tokens / questions:,.0f} tokens"
    all = "" if tokens is None else f", {tokens:,} tokens"
    return f"{name:<34}{calls / questions:.1f} calls{at_median}, {each} a question ({calls:,} calls{all} in all)"
