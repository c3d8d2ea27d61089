"""Published figures of table retrieval, for comparison with ours.

:data:`PUBLISHED` has recall and complete recall: of iterative JAR (Boutaleb et al. 2025, table 7, Contriever), which
also reran JAR, and of MURRE (table 2, with SGPT-125M). :data:`TABLE_1` has precision, recall and F1 as JAR itself
reports them (Chen, Zhang and Roth, ACL 2024, table 1). Its questions are fewer: those with wrong gold SQL are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Figures = Mapping[int, tuple[float, ...]]
Curve = dict[int, tuple[float, float]]
"""Recall and complete recall in percent by K."""

PUBLISHED: dict[str, dict[str, Curve]] = {
    "spider": {
        "dense (Contriever)": {2: (81.3, 59.9), 3: (93.8, 85.6), 5: (98.9, 97.6), 10: (99.7, 99.3)},
        "JAR (MIP), rerun by iterative JAR": {2: (85.4, 67.1), 3: (96.4, 91.3), 5: (99.4, 98.7)},
        "iterative JAR (greedy)": {2: (85.5, 68.0), 3: (95.6, 90.0), 5: (98.0, 95.6), 10: (98.3, 96.5)},
    },
    "bird": {
        "dense (Contriever)": {2: (63.5, 34.8), 3: (76.2, 56.2), 5: (85.2, 71.3), 10: (95.1, 89.9)},
        "JAR (MIP), rerun by iterative JAR": {2: (74.4, 51.7), 3: (85.6, 71.9), 5: (90.4, 81.7)},
        "iterative JAR (greedy)": {2: (74.2, 51.5), 3: (84.7, 70.5), 5: (91.0, 82.1), 10: (96.2, 92.6)},
    },
    "fiben": {
        "JAR (MIP), rerun by iterative JAR": {2: (30.7, 4.3), 3: (38.3, 7.2), 5: (48.4, 10.0), 10: (58.6, 14.0)},
        "iterative JAR (greedy)": {2: (29.2, 4.3), 3: (36.8, 6.8), 5: (51.8, 10.8), 10: (62.6, 14.7)},
    },
    "spider_union": {
        "dense (SGPT-125M)": {3: (63.0, 54.3), 5: (73.1, 66.0), 10: (80.7, 75.4)},
        "CRUSH": {3: (68.9, 60.2), 5: (76.3, 71.3), 10: (83.4, 80.7)},
        "MURRE": {3: (70.2, 65.0), 5: (77.5, 74.2), 10: (82.3, 81.0)},
    },
    "bird_union": {
        "dense (SGPT-125M)": {3: (54.0, 39.0), 5: (63.2, 50.3), 10: (73.3, 62.1)},
        "CRUSH": {3: (60.2, 42.1), 5: (70.0, 56.1), 10: (79.5, 70.2)},
        "MURRE": {3: (64.8, 51.4), 5: (72.7, 62.7), 10: (79.6, 72.9)},
    },
}

QUESTIONS = {"spider": 459, "bird": 1172, "fiben": 279, "spider_union": 658, "bird_union": 1534}
"""The questions of :data:`PUBLISHED`; MURRE's also count those that need one table."""

TABLE_1: dict[str, dict[str, dict[int, tuple[float, float, float]]]] = {
    "spider": {
        "DTR": {2: (81.4, 77.4, 78.9), 5: (41.0, 95.8, 57.1), 10: (21.3, 99.3, 34.9)},
        "Contriever": {2: (76.2, 72.7, 74.0), 5: (39.8, 93.3, 55.5), 10: (20.6, 96.3, 33.8)},
        "JAR-F (DTR)": {2: (87.1, 82.9, 84.5), 5: (41.9, 97.8, 58.3), 10: (21.3, 99.7, 35.0)},
        "JAR-F (Contriever)": {2: (82.8, 79.1, 80.5), 5: (39.9, 93.7, 55.7), 10: (20.7, 96.6, 33.9)},
        "JAR-G (DTR)": {2: (92.2, 87.9, 89.6), 5: (42.4, 99.2, 59.1), 10: (21.4, 99.9, 35.1)},
        "JAR-G (Contriever)": {2: (89.2, 85.8, 87.1), 5: (40.3, 95.0, 56.3), 10: (20.6, 96.6, 33.8)},
        "JAR-D (DTR)": {2: (86.4, 82.3, 83.9), 5: (41.4, 96.7, 57.6), 10: (21.3, 99.5, 35.0)},
        "JAR-D (Contriever)": {2: (81.7, 78.1, 79.5), 5: (39.8, 93.3, 55.5), 10: (20.6, 96.4, 33.8)},
    },
    "bird": {
        "DTR": {2: (64.9, 58.9, 61.3), 5: (37.2, 82.9, 50.9), 10: (21.5, 95.4, 34.8)},
        "Contriever": {2: (65.0, 59.4, 61.6), 5: (37.0, 82.9, 50.8), 10: (21.1, 93.9, 34.3)},
        "JAR-F (DTR)": {2: (76.1, 69.3, 72.0), 5: (40.2, 89.7, 55.1), 10: (21.7, 96.6, 35.3)},
        "JAR-F (Contriever)": {2: (73.4, 67.0, 69.5), 5: (40.3, 89.9, 55.2), 10: (21.5, 95.4, 34.9)},
        "JAR-G (DTR)": {2: (78.0, 71.1, 73.8), 5: (40.9, 91.3, 56.0), 10: (22.1, 97.8, 35.8)},
        "JAR-G (Contriever)": {2: (76.7, 70.2, 72.7), 5: (40.4, 90.1, 55.3), 10: (21.8, 96.5, 35.3)},
        "JAR-D (DTR)": {2: (74.7, 68.1, 70.7), 5: (39.5, 88.4, 54.2), 10: (21.6, 96.2, 35.1)},
        "JAR-D (Contriever)": {2: (72.7, 66.3, 68.8), 5: (39.2, 87.5, 53.7), 10: (21.3, 94.5, 34.5)},
    },
}
"""JAR's table 1: precision, recall and F1 in percent by K. JAR-F is the method in full, JAR-G has declared keys, JAR-D
leaves the joins out; in brackets the relevance that it starts from."""

TABLE_1_QUESTIONS = {"spider": 443, "bird": 1095}
"""The questions of :data:`TABLE_1`."""


def beside(dataset: str, method: str, ours: Mapping[str, Mapping[str, float]], questions: int) -> str:
    """Our figures and the published ones as text tables, each line with its number of questions.

    Args:
        dataset: whose published figures are shown.
        method: our method.
        ours: P, R, F1 and CR in percent, by K.
        questions: that ours are a mean over.
    """
    sizes = sorted(map(int, ours))
    parts: list[tuple[tuple[str, ...], Mapping[str, Mapping[str, Figures]], Mapping[str, int]]] = [
        (("R", "CR"), PUBLISHED, QUESTIONS),
        (("P", "R", "F1"), TABLE_1, TABLE_1_QUESTIONS),
    ]
    tables = []
    for measures, published, counts in parts:
        mine = {size: tuple(ours[str(size)][name] for name in measures) for size in sizes}
        rows: dict[str, tuple[int, Figures]] = {f"tagframe {method}": (questions, mine)}
        rows |= {name: (counts[dataset], curve) for name, curve in published.get(dataset, {}).items()}
        if len(rows) > 1 or published is PUBLISHED:
            tables.append(_table(f"{dataset} ({'/'.join(measures)} %)", rows, sizes))
    return "\n".join(tables)


def _table(title: str, rows: Mapping[str, tuple[int, Figures]], sizes: Sequence[int]) -> str:
    width = max(map(len, [title, *rows]))
    lines = [" ".join([f"{title:<{width}}", " questions", *(f"{f'K={size}':>16}" for size in sizes)])]
    for name, (questions, curve) in rows.items():
        cells = ["/".join(f"{value:.1f}" for value in curve[size]) if size in curve else "-" for size in sizes]
        lines.append(" ".join([f"{name:<{width}}", f"{questions:>10,}", *(f"{cell:>16}" for cell in cells)]))
    return "\n".join(lines)
