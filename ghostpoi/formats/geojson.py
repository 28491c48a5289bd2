"""GeoJSON: features that are points, in a collection or one per line. Their properties are columns."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.json_text import (
    JsonLayout,
    Tree,
    decoded,
    first_object,
    flattened,
    lines,
    object_text,
    objects,
    parsed,
)  # fmt: skip
from ghostpoi.formats.records import json_text, read_records
from ghostpoi.formats.source import Source

AXES = ("longitude", "latitude", "altitude")
NOWHERE = (None, None)
MAPPING = {"lon": "geometry.longitude", "lat": "geometry.latitude"}
DEGREES = re.compile(r"CRS84|4326")  # names of coordinate systems in degrees of WGS 84
COLLECTION = re.compile(r'^\{[^[]*"type"\s*:\s*"FeatureCollection"|"features"\s*:\s*\[\s*\{\s*"type"\s*:\s*"Feature"')


@dataclass(frozen=True)
class GeoJsonLayout(JsonLayout):
    """Features. Members of the collection other than its coordinate system are notes."""

    members: dict[str, Any] = field(default_factory=dict, repr=False)
    is_collection: bool = True

    def json_path(self, column: str) -> str:
        names = self.paths[column]
        if names[0] == "geometry":
            return f'{self.root}["geometry"]["coordinates"][{AXES.index(names[1])}]'
        return super().json_path(column)

    def record(self, tree: Tree) -> str:
        at = [tree["geometry"][name] for name in AXES if name in tree["geometry"]]
        at = at[:2] if at[2:] == ["null"] else at  # other points have an altitude
        geometry = f'{{"type": "Point", "coordinates": [{", ".join(at)}]}}' if set(at) != {"null"} else "null"
        others = {name: value for name, value in tree.items() if name not in ("geometry", "properties")}
        properties = tree.get("properties", {})
        return object_text({"type": '"Feature"', **others, "geometry": geometry, "properties": properties})

    def without_metadata(self) -> "GeoJsonLayout":
        return self.with_members({name: value for name, value in self.members.items() if name == "crs"})

    def with_members(self, members: dict[str, Any]) -> "GeoJsonLayout":
        """Return the layout of a collection with these members."""
        if not self.is_collection:
            return self
        listed = "".join(f"{json_text(name)}: {json_text(value)}, " for name, value in members.items())
        start = f'{{"type": "FeatureCollection", {listed}"features": [\n'
        return replace(self, members=members, start=start, between=",\n", end="\n]}\n")


@dataclass(frozen=True)
class GeoJsonFormat:
    """Points with properties."""

    summary: str = "GeoJSON: a FeatureCollection of points, or one such feature per line"

    def recognises(self, head: bytes) -> bool:
        text = head.decode("utf-8-sig", "replace").lstrip()
        first = first_object(text) if text.startswith("{") else None
        if isinstance(first, dict) and first.get("type") in ("Feature", "FeatureCollection"):
            return True
        return text.startswith("{") and COLLECTION.search(text[:4096]) is not None

    def read(self, source: Source, data: bytes, mapping: dict[str, str]) -> CheckinFile:
        text = decoded(source, data)
        members, is_collection = {}, True
        if isinstance(first_object(text), dict) and first_object(text).get("type") == "Feature":
            values, is_collection = lines(source, text), False
        else:
            members = parsed(source, text)
            values = members.pop("features", None)
            members.pop("type", None)
        if not isinstance(values, list) or not values:
            raise InputError(f"{source} is GeoJSON without features; give a file with at least one check-in")
        named = str(members.get("crs"))
        if "crs" in members and not DEGREES.search(named):
            raise InputError(
                f"{source} has another coordinate system than WGS 84 ({named[:80]}); convert it to degrees"
            )
        place = f"{source}, feature {{}}"
        records = [_record(feature, place.format(n)) for n, feature in enumerate(objects(values, place), 1)]
        columns, paths = {}, {}
        for names, texts in flattened(records).items():
            name = ".".join(names).removeprefix("properties.")
            name = name if names[0] in ("properties", "geometry") else f"feature.{name}"
            if name in columns:
                raise InputError(f"{source}: two columns would be named {name!r}; rename one of them")
            columns[name], paths[name] = texts, names
        words = "GeoJSON: " + ("a collection of points" if is_collection else "one point per line")
        mime_type, root = ("application/json", "$.features[*]") if is_collection else ("application/jsonlines", "$")
        layout = GeoJsonLayout(paths, "", "\n", "\n", words, mime_type, root, is_collection=is_collection)
        own = {} if "point" in mapping else MAPPING
        return read_records(source, data, "geojson", columns, own | mapping, layout.with_members(members), "feature")


def _record(feature: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a feature with named coordinates, null where it has no geometry; refuse what is no point."""
    geometry, properties = feature.get("geometry"), feature.get("properties")
    if geometry is None:
        geometry = {"type": "Point", "coordinates": []}
    point = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    if not isinstance(point, list) or len(point) not in (0, 2, 3):
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        what = "is a point without a longitude and a latitude" if kind == "Point" else f"is a {kind}, not a point"
        raise InputError(f"{place}: its geometry {what if kind else 'has no type'}; give points")
    if properties is not None and not isinstance(properties, dict):
        raise InputError(f"{place}: its properties are not an object; correct them")
    others = {name: value for name, value in feature.items() if name not in ("type", "geometry", "properties")}
    return {"geometry": dict(zip(AXES, point or NOWHERE, strict=False)), **others, "properties": properties or {}}


GEOJSON = GeoJsonFormat()
