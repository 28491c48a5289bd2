"""The small city as pairs of files: check-ins, and a table of venues."""

import random
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

from small_city import Release, protect, scratch
from written_as import Visit, visits


@dataclass(frozen=True)
class Pair:
    data: Path
    venues: Path

    @property
    def words(self) -> list[str]:
        return ["--venues", str(self.venues)]


@cache
def venues() -> dict[str, Visit]:
    """A visit of each venue, in random order."""
    found = {v.poi: v for v in visits()}
    order = sorted(found)
    random.Random(3).shuffle(order)
    return {poi: found[poi] for poi in order}


@cache
def number() -> dict[str, int]:
    """Numbers of the venues, as LibCity and GETNext have them; the order of first visits must not show in them."""
    return {poi: n for n, poi in enumerate(sorted(venues(), key=lambda poi: random.Random(poi).random()))}


@cache
def libcity() -> Pair:
    """NAME.dyna and NAME.geo. The table also lists a venue that nobody visits."""
    folder = scratch() / "libcity"
    folder.mkdir()
    rows = (f"{n},trajectory,{v.time:%Y-%m-%dT%H:%M:%SZ},{v.user},{number()[v.poi]}\n" for n, v in enumerate(visits()))
    (folder / "city.dyna").write_text("dyna_id,type,time,entity_id,location\n" + "".join(rows))
    geo = (f'{number()[poi]},Point,"[{v.lon},{v.lat}]",{v.category},"{poi}, Inc"\n' for poi, v in venues().items())
    head = "geo_id,type,coordinates,venue_category_id,name\n"
    (folder / "city.geo").write_text(head + "".join(geo) + '99999,Point,"[0.5,0.5]",x,nowhere\n')
    return Pair(folder / "city.dyna", folder / "city.geo")


@cache
def recbole() -> Pair:
    folder = scratch() / "recbole" / "city"
    folder.mkdir(parents=True)
    rows = (f"{v.user}\t{v.poi}\t{v.time.timestamp()}\n" for v in visits())
    (folder / "city.inter").write_text("user_id:token\titem_id:token\ttimestamp:float\n" + "".join(rows))
    items = (f"{poi}\t{v.lat}\t{v.lon}\t{v.category}\n" for poi, v in venues().items())
    head = "item_id:token\tlatitude:float\tlongitude:float\tvenue_category_id:token\n"
    (folder / "city.item").write_text(head + "".join(items))
    return Pair(folder / "city.inter", folder / "city.item")


@cache
def getnext() -> Pair:
    """The training file and the table that build_graph.py writes, which counts the check-ins of each POI."""
    folder = scratch() / "getnext"
    folder.mkdir()
    code = {c: n for n, c in enumerate(sorted({v.category for v in visits()}))}
    head = "user_id,POI_id,POI_catid,POI_catid_code,POI_catname,latitude,longitude,timezone,UTC_time,local_time"
    lines = [f"{head},day_of_week,norm_in_day_time,trajectory_id"]
    for v in visits():
        c, local = code[v.category], v.time - timedelta(hours=4)
        shown = f"-240,{v.time:%Y-%m-%d %H:%M:%S}+00:00,{local:%Y-%m-%d %H:%M:%S}-04:00"
        parts = f"{local.weekday()},{(2 * local.hour + local.minute // 30) / 48},{v.user}_{local:%j}"
        lines.append(f"{v.user},{v.poi},{v.category},{c},cat {c},{v.lat},{v.lon},{shown},{parts}")
    (folder / "NYC_train.csv").write_text("\n".join(lines) + "\n")
    count = Counter(v.poi for v in visits())
    lines = ["node_name/poi_id,checkin_cnt,poi_catid,poi_catid_code,poi_catname,latitude,longitude"]
    for poi, v in venues().items():
        c = code[v.category]
        lines.append(f"{poi},{count[poi]},{v.category},{c},cat {c},{v.lat},{v.lon}")
    (folder / "graph_X.csv").write_text("\n".join(lines) + "\n")
    return Pair(folder / "NYC_train.csv", folder / "graph_X.csv")


PAIRS = {"libcity": libcity, "recbole": recbole, "getnext": getnext}


@cache
def released(kind: str) -> Release:
    pair = PAIRS[kind]()
    return protect(pair.data, scratch() / f"{kind}-release", *pair.words)
