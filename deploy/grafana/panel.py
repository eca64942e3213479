"""What a dashboard is made of: panels with a question as title, and Grafana's JSON for them."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
DATASOURCE = {"type": "prometheus", "uid": "weir-prometheus"}
COLUMNS = 24
SCHEMA_VERSION = 41


@dataclass(frozen=True)
class Query:
    """One expression, and how its series are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One question, with what answers it."""

    title: str
    queries: tuple[Query, ...]
    unit: str
    says: str
    """What is seen, and what it means, for whoever asks."""
    kind: str = "timeseries"
    """`timeseries`, `stat`, or `bars` (one bar a series, now)."""
    width: int = 12
    height: int = 8
    warn_above: float | None = None
    warn_below: float | None = None
    stacked: bool = False
    most: float | None = None
    """Where the axis ends."""


@dataclass(frozen=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    says: str
    panels: tuple[Panel, ...]

    @property
    def file_name(self) -> str:
        """Of its JSON."""
        return f"{self.uid.removeprefix('weir-')}.json"

    def document(self) -> Json:
        """Grafana's own form of it."""
        return {
            "uid": self.uid,
            "title": f"Weir: {self.title}",
            "description": self.says,
            "tags": ["weir"],
            "editable": False,
            "graphTooltip": 1,
            "refresh": "15s",
            "schemaVersion": SCHEMA_VERSION,
            "time": {"from": "now-1h", "to": "now"},
            "timezone": "browser",
            "links": [
                {"type": "dashboards", "tags": ["weir"], "title": "Weir", "asDropdown": False}
            ],
            "templating": {"list": []},
            "annotations": {"list": []},
            "panels": [
                _drawn(panel, number, place)
                for number, (panel, place) in enumerate(
                    zip(self.panels, _places(self.panels), strict=True), start=1
                )
            ],
        }


def _places(panels: tuple[Panel, ...]) -> list[Json]:
    """Left to right, a new row where one is full."""
    places, x, y, row_height = [], 0, 0, 0
    for panel in panels:
        if x + panel.width > COLUMNS:
            x, y, row_height = 0, y + row_height, 0
        places.append({"x": x, "y": y, "w": panel.width, "h": panel.height})
        x, row_height = x + panel.width, max(row_height, panel.height)
    return places


def _drawn(panel: Panel, number: int, place: Json) -> Json:
    defaults: Json = {"unit": panel.unit, "thresholds": _thresholds(panel)}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.kind == "timeseries":
        defaults["min"] = 0
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 20 if panel.stacked else 5,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none"},
            "thresholdsStyle": {"mode": "line" if _bound(panel) is not None else "off"},
        }
    return {
        "id": number,
        "type": {"bars": "bargauge"}.get(panel.kind, panel.kind),
        "title": panel.title,
        "description": panel.says,
        "datasource": DATASOURCE,
        "gridPos": place,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": query.expression,
                "legendFormat": query.legend or "__auto",
                "range": panel.kind == "timeseries",
                "instant": panel.kind != "timeseries",
            }
            for index, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
    }


def _options(panel: Panel) -> Json:
    last: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "timeseries":
        return {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    shown: Json = {"reduceOptions": last, "orientation": "auto"}
    if panel.kind == "stat":
        return {**shown, "colorMode": "value", "graphMode": "none", "textMode": "auto"}
    return {**shown, "orientation": "horizontal", "displayMode": "basic", "showUnfilled": True}


def _bound(panel: Panel) -> float | None:
    return panel.warn_above if panel.warn_above is not None else panel.warn_below


def _thresholds(panel: Panel) -> Json:
    good, bad = ("green", "red") if panel.warn_below is None else ("red", "green")
    steps: list[Json] = [{"color": good, "value": None}]
    bound = _bound(panel)
    if bound is not None:
        steps.append({"color": bad, "value": bound})
    return {"mode": "absolute", "steps": steps}
