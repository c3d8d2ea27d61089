"""Published figures of table retrieval, for comparison with ours: recall and complete recall in percent by K.

JAR: Chen, Zhang, Roth (ACL 2024); greedy: Boutaleb et al. (2025), tables 1 to 3; MURRE: table 2, with SGPT-125M.
"""

from __future__ import annotations

from pathlib import Path

from tag_bench import new_figure

Curve = dict[int, tuple[float, float]]

PUBLISHED: dict[str, dict[str, Curve]] = {
    "spider": {
        "dense (Contriever)": {2: (81.3, 59.9), 3: (93.8, 85.6), 5: (98.9, 97.6), 10: (99.7, 99.3)},
        "JAR (MIP)": {2: (85.4, 67.1), 3: (96.4, 91.3), 5: (99.4, 98.7)},
        "greedy JAR": {2: (85.5, 68.0), 3: (95.6, 90.0), 5: (98.0, 95.6), 10: (98.3, 96.5)},
    },
    "bird": {
        "dense (Contriever)": {2: (63.5, 34.8), 3: (76.2, 56.2), 5: (85.2, 71.3), 10: (95.1, 89.9)},
        "JAR (MIP)": {2: (74.4, 51.7), 3: (85.6, 71.9), 5: (90.4, 81.7)},
        "greedy JAR": {2: (74.2, 51.5), 3: (84.7, 70.5), 5: (91.0, 82.1), 10: (96.2, 92.6)},
    },
    "fiben": {
        "JAR (MIP)": {2: (30.7, 4.3), 3: (38.3, 7.2), 5: (48.4, 10.0), 10: (58.6, 14.0)},
        "greedy JAR": {2: (29.2, 4.3), 3: (36.8, 6.8), 5: (51.8, 10.8), 10: (62.6, 14.7)},
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


def beside(dataset: str, method: str, ours: Curve) -> str:
    """Our figures and the published ones as a text table: one line per method, R/CR by K."""
    rows = {f"tagframe {method}": ours} | PUBLISHED.get(dataset, {})
    sizes = sorted(ours)
    width = max(map(len, rows))
    lines = [" ".join([f"{dataset + ' (R/CR %)':<{width}}", *(f"{'K=' + str(size):>11}" for size in sizes)])]
    for name, curve in rows.items():
        cells = ["{:.1f}/{:.1f}".format(*curve[size]) if size in curve else "-" for size in sizes]
        lines.append(" ".join([f"{name:<{width}}", *(f"{cell:>11}" for cell in cells)]))
    return "\n".join(lines)


def plot(dataset: str, method: str, ours: Curve, path: Path) -> None:
    """A plot of complete recall by K, ours and the published one."""
    figure, axes = new_figure()
    for name, curve in ({f"tagframe {method}": ours} | PUBLISHED.get(dataset, {})).items():
        sizes = sorted(curve)
        style = {"linewidth": 2.5} if curve is ours else {"linewidth": 1.0, "linestyle": "--"}
        axes.plot(sizes, [curve[size][1] for size in sizes], marker="o", label=name, **style)
    axes.set(xlabel="K", ylabel="complete recall (%)", title=dataset, xticks=sorted(ours))
    axes.legend()
    figure.savefig(path, dpi=120)
