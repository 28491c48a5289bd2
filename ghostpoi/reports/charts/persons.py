"""What a release says about people, next to people who are not in it and to the clean file."""

from collections.abc import Sequence

from ghostpoi.reports import charts
from ghostpoi.reports.charts import Chart, Figure, chart, numbers, rows, strips
from ghostpoi.reports.persons_view import PersonRow, percent

ROW_PX = 62


def persons_chart(found: Sequence[PersonRow]) -> Chart:
    """One group of bars for each measure."""
    labels, series = [row.label[:1].upper() + row.label[1:] for row in found], []
    sides = {
        "release": ([row.release for row in found], charts.BLUE),
        "control": ([row.control for row in found], charts.MUTED),
        "clean file": ([row.clean for row in found], charts.VERMILLION),
    }
    for place, (name, (figures, colour)) in enumerate(sides.items()):
        shares = [100 * figure["mean"] if figure else 0.0 for figure in figures]
        texts = [f"{label}: {percent(f) or 'not measured'}, {name}" for label, f in zip(labels, figures, strict=True)]
        series.append(strips(name, colour, shares, texts, place, len(sides)))
    x = numbers("", [value for one in series for value in one.values], "{:g}%")
    return chart("persons", Figure(series, x, rows(labels), 20 + ROW_PX * len(found)))
