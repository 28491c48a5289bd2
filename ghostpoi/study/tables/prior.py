"""What was measured before this project, below our measurements of the same."""

from ghostpoi.study import labels
from ghostpoi.study.paper import contents
from ghostpoi.study.results import Results
from ghostpoi.study.tables.table import Row, Table, show


def beside_prior(results: Results) -> Table:
    """Show acc@1 and naturalness of both."""
    prior, rows = contents("prior"), list[Row]()
    keys = list(dict.fromkeys(key for row in prior["measured"].values() for key in row))
    digits = {key: (2, 1) if key == "naturalness" else (4, 3) for key in keys}
    for method, row in prior["measured"].items():
        name = labels.method(method) if method in results.methods else method
        if method in results.methods:
            ours = (show(results.value(method, key), digits[key][0]) for key in keys)
            rows.append((name, "measured", *ours))
        rows.append((name, "earlier", *(show(row.get(key), digits[key][1]) for key in keys)))
    clean, alone = show(prior["clean"], 3), show(prior["leak-only"], 3)
    note = (
        f"Earlier: one seed; clean {clean}, leak-only {alone}. Methods without a measured row are not part of ghostpoi."
    )
    columns = ("method", "source", *map(labels.heading, keys))
    return Table(f"acc@1 beside an earlier measurement ({labels.place(results)})", columns, tuple(rows), (note,))
