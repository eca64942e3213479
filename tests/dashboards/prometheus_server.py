"""Debian's Prometheus with our own configuration, its targets, paths and pace changed."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import servers
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "deploy/prometheus"
SCRAPE_S = 1
READY_WITHIN_S = 30.0
Json = dict[str, Any]


class PrometheusMissing(Exception):
    """There is none; the message says what is needed, in one line."""


@dataclass(frozen=True)
class Series:
    """One series of an answer."""

    labels: dict[str, str]
    points: list[tuple[float, float]]
    """Unix seconds and values; the ones that are no number are left out."""


@dataclass(frozen=True)
class Prometheus:
    """A running one."""

    url: str
    process: subprocess.Popen[bytes]

    def instant(self, expression: str, at_s: float) -> list[Series]:
        """What an expression is at one instant. Raises AssertionError where it is refused."""
        found = self._ask("query", query=expression, time=at_s)
        return [_series(each["metric"], [each["value"]]) for each in found]

    def range(self, expression: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """And what it was, instant by instant."""
        asked = {"query": expression, "start": start_s, "end": end_s, "step": step_s}
        return [
            _series(each["metric"], each["values"]) for each in self._ask("query_range", **asked)
        ]

    def knows(self, expression: str) -> bool:
        """Whether there is anything of it now."""
        return bool(self.instant(expression, time.time()))

    def targets(self) -> dict[str, str]:
        """The health of each target, by job and instance."""
        return {
            f"{each['labels']['job']} {each['labels']['instance']}": each["health"]
            for each in self._get("/api/v1/targets?state=active")["data"]["activeTargets"]
        }

    def alerts(self) -> dict[str, str]:
        """The state of each rule that alerts."""
        groups = self._get("/api/v1/rules?type=alert")["data"]["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}

    def _ask(self, path: str, **asked: object) -> list[Json]:
        query = urllib.parse.urlencode(asked)
        answer = self._get(f"/api/v1/{path}?{query}")
        assert answer["status"] == "success", answer
        found: list[Json] = answer["data"]["result"]
        return found

    def _get(self, path: str) -> Json:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:  # noqa: S310 - ours
            found: Json = json.loads(answer.read())
            return found


def _series(labels: dict[str, str], values: Sequence[Sequence[Any]]) -> Series:
    points = [(float(at), float(value)) for at, value in values]
    return Series(labels, [point for point in points if point[1] == point[1]])


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`. Raises PrometheusMissing."""
    found = shutil.which(name)
    if found is None:
        raise PrometheusMissing(f"these tests need Debian's prometheus: {name} is not in PATH")
    return found


def changed_configuration(folder: Path, targets: Mapping[str, Sequence[str]]) -> Path:
    """A copy of our configuration in `folder` with these targets by job, to be read once a second.

    A job whose targets are looked up by name is given them as they are: there are no such names.
    """
    shutil.copytree(CONFIGURATION, folder)
    path = folder / "prometheus.yml"
    configuration = yaml.safe_load(path.read_text())
    for each in ("scrape_interval", "scrape_timeout", "evaluation_interval"):
        configuration["global"][each] = f"{SCRAPE_S}s"
    managers = configuration["alerting"]["alertmanagers"][0]["file_sd_configs"][0]
    managers["files"] = [str(folder / "alertmanagers/*.yml")]
    jobs = {job["job_name"]: job for job in configuration["scrape_configs"]}
    configuration["scrape_configs"] = [
        {"job_name": name, "static_configs": [{"targets": list(given)}]}
        for name, given in targets.items()
        if name in jobs
    ]
    path.write_text(yaml.safe_dump(configuration))
    return path


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, Sequence[str]]) -> Iterator[Prometheus]:
    """One that scrapes these targets, until the block ends. Raises PrometheusMissing."""
    path = changed_configuration(folder / "prometheus", targets)
    address = f"127.0.0.1:{servers.free_port()}"
    log = (folder / "prometheus.log").open("ab")
    process = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'series'}",
            f"--web.listen-address={address}",
        ],
        stdout=log,
        stderr=log,
    )
    started = Prometheus(f"http://{address}", process)
    deadline = time.monotonic() + READY_WITHIN_S
    try:
        while not _ready(started):
            assert process.poll() is None, (folder / "prometheus.log").read_text()[-2000:]
            assert time.monotonic() < deadline, (folder / "prometheus.log").read_text()[-2000:]
            time.sleep(0.05)
        yield started
    finally:
        log.close()
        process.terminate()
        process.wait(20)


def _ready(server: Prometheus) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/-/ready", timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False
