"""Draw the systems' seconds as bars: one panel for each of load, upsert and two scans, one bar a system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

OURS, OTHERS = "#c2410c", "#94a3b8"
PANELS = {
    "load": ("load",),
    "upsert of 11 % (mean of two)": ("up1", "up2"),
    "scan of 3 columns": ("scan3",),
    "scan of all columns": ("scan_all",),
}


def draw(seconds: Mapping[str, Mapping[str, float]], title: str, picture: Path) -> None:
    """Write the picture of seconds by system and phase; shorter bars are faster."""
    import matplotlib as mpl

    mpl.use("Agg")
    # The same results give the same file, and text stays text.
    mpl.rcParams.update({"svg.hashsalt": "pyhudi", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 6.5), layout="constrained")
    for axis, (panel, phases) in zip(axes.flat, PANELS.items(), strict=True):
        bars = {
            row: sum(by_phase[phase] for phase in phases) / len(phases)
            for row, by_phase in seconds.items()
            if all(phase in by_phase for phase in phases)
        }
        bars = dict(sorted(bars.items(), key=lambda bar: bar[1], reverse=True))
        colors = [OURS if row.startswith("pyhudi") else OTHERS for row in bars]
        drawn = axis.barh(list(bars), list(bars.values()), color=colors)
        axis.bar_label(drawn, fmt="%.1f", padding=3)
        axis.set_title(f"{panel}, seconds", loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.12)
    figure.suptitle(title, x=0.01, ha="left")
    figure.savefig(picture, metadata={"Date": None})
