"""The block of docs/explanation/performance.md that shows how cost grows with the rows."""

import json
from pathlib import Path
from typing import Any

from docs.blocks.common import RESULTS, Block
from docs.blocks.common import table as _markdown

BUSY = 1.0  # a higher load before the measurement is mentioned
ON_PAPER, CORES = (1_000_000_000, 10_000_000_000), (64, 512)


def scale() -> str:
    """Tables, curve and what `python -m benchmarks scale` measured."""
    return section(stored())


def stored() -> dict[str, Any]:
    """Read what `python -m benchmarks scale -o results/bench-scale.json` wrote."""
    return json.loads((RESULTS / "bench-scale.json").read_text("utf-8"))


def section(found: dict[str, Any]) -> str:
    """What the page shows of the results."""
    largest, sample = found["sizes"][-1], found["ghost"]
    parts = [table(found), "![Time and memory by rows](../figures/scale.svg)\n"]
    if found["load_before"] > BUSY:
        parts.append(
            f"Other work slowed this down: the load of the {found['cores']} cores was {found['load_before']:.1f}.\n"
        )
    if found["growth"] is not None:
        parts.append(
            f"A row takes {found['growth']:.2f} times as long at {short(largest['rows'])} rows as at "
            f"{short(found['growth_from'])}.\n"
        )
    if sample:
        parts.append(
            f"GHOST ran on {sample['regions']} of {sample['of_regions']} cities ({sample['rows']:,} rows, "
            f"{sample['seconds_per_row'] * 1000:.1f} ms each, on the CPU); its times are extrapolated.\n"
        )
    return "\n".join([*parts, "Projected on the line through the smallest and the largest size:\n", on_paper(found)])


def table(found: dict[str, Any]) -> str:
    """The measured sizes, one per row."""
    lines = [["rows", "regions", "polars, s", "`protect`, s", "ratio", "rows/s", "GB", "`verify`, s", "GB", "GHOST, h"]]
    for number, one in enumerate(found["sizes"]):
        guess = found["ghost"]["extrapolated"][number]["seconds"] if found["ghost"] else None
        lines.append([
            short(one["rows"]), f"{one['regions']:,}", figure(one["polars"]["seconds"]),
            figure(one["protect"]["seconds"]), f"{one['ratio']:.1f}", f"{one['rows_per_second']:,.0f}",
            figure(one["protect"]["peak_bytes"] / 1e9), figure(one["verify"]["seconds"]),
            figure(one["verify"]["peak_bytes"] / 1e9), "" if guess is None else figure(guess / 3600),
        ])  # fmt: skip
    return _markdown(lines[0], lines[1:])


def on_paper(found: dict[str, Any]) -> str:
    """What more rows would cost: the work of the main process is serial, that of the workers is shared by cores."""
    shared = [f"on {cores} cores, h" for cores in CORES]
    lines = [["rows", "CPU, h", *shared, "GB per worker", "GB of the main process", "disk, GB"]]
    for rows in ON_PAPER:
        cpu, serial, main, disk = (
            on_the_line(found, key, rows) for key in ("cpu_seconds", "main_cpu_seconds", "main_bytes", "disk_bytes")
        )
        lines.append([
            short(rows), figure(cpu / 3600), *(figure((serial + (cpu - serial) / cores) / 3600) for cores in CORES),
            figure(found["sizes"][-1]["protect"]["worker_bytes"] / 1e9), figure(main / 1e9), figure(disk / 1e9),
        ])  # fmt: skip
    return _markdown(lines[0], lines[1:])


def on_the_line(found: dict[str, Any], key: str, rows: int) -> float:
    """A cost of `protect` at so many rows, on the line through the smallest and the largest size."""
    few, many = found["sizes"][0], found["sizes"][-1]
    low, high = few["protect"][key], many["protect"][key]
    return float(low + (high - low) * (rows - few["rows"]) / (many["rows"] - few["rows"]))


def draw(found: dict[str, Any], folder: Path) -> list[Path]:
    """Draw time and memory against rows."""
    import matplotlib.pyplot as plt

    from ghostpoi.study.figures import STYLE, save

    rows = [one["rows"] for one in found["sizes"]]
    with plt.rc_context(STYLE["rc"]):
        drawing, (times, memory) = plt.subplots(1, 2, figsize=(9.0, 3.6))
        drawing.subplots_adjust(wspace=0.3)
        for name, marker in (("polars", "s"), ("protect", "o"), ("verify", "^")):
            costs = [one[name] for one in found["sizes"]]
            times.plot(rows, [cost["seconds"] for cost in costs], marker=marker, label=name)
            memory.plot(rows, [cost["peak_bytes"] / 1e9 for cost in costs], marker=marker, label=name)
        times.set(xscale="log", yscale="log", ylabel="seconds")
        memory.set(xscale="log", ylim=(0, None), ylabel="resident peak, GB")
        for axes in (times, memory):
            axes.minorticks_off()
            axes.set_xticks(rows, [f"{one / 1e6:.2g}" for one in rows])
            axes.set_xlabel("million rows")
        times.legend()
        return save(drawing, folder, "scale", ("svg",))


def short(rows: int) -> str:
    """A number of rows with its unit."""
    for unit, name in ((1_000_000_000, "billion"), (1_000_000, "million"), (1000, "thousand")):
        if rows >= unit * 0.9995:
            return f"{rows / unit:.3g} {name}"
    return str(rows)


def figure(value: float) -> str:
    """A number with at least two digits."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


BLOCKS: dict[str, Block] = {"scale": scale}
