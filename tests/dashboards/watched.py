"""A watched system after its script, and what Prometheus saw of it."""

from dataclasses import dataclass

from dashboards.prometheus_server import Prometheus, Series
from weir_dev import WeirDev


@dataclass(frozen=True)
class Watched:
    """Asked in the dashboards' own words."""

    system: WeirDev
    server: Prometheus
    began_s: float
    ended_s: float

    def expression(self, text: str) -> str:
        """A dashboard's expression with the variables that Grafana puts in."""
        whole = f"{int(self.ended_s - self.began_s)}s"
        return text.replace("$__rate_interval", "12s").replace("$__range", whole)

    def now(self, text: str) -> list[Series]:
        """What it is at the script's end."""
        return self.server.instant(self.expression(text), self.ended_s)

    def over_time(self, text: str) -> list[Series]:
        """What it was, from the script's begin to its end."""
        return self.server.range(self.expression(text), self.began_s, self.ended_s, 1)

    def highest(self, text: str) -> float:
        """Its highest value in all that time, of any series; -1 where there was none."""
        found = (value for series in self.over_time(text) for _, value in series.points)
        return max(found, default=-1.0)
