"""What of a gateway is degraded. Each word has a row in `docs/architecture.md`."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.hosted import hosted_models
from gateway.domain.pools import model_of, pool_of_worker
from gateway.serving.authenticate import is_trusted
from gateway.serving.leases import Leases
from gateway.serving.ports import Directory, Fleet, UsageJournal

POSTGRES_AWAY_MS = 2_000
METERING_LATE_S = 10.0
WORDS = (
    "journal", "redis", "clock", "directory", "redis_empty", "postgres", "metering",
    "usage", "second_copy", "dead_letters", "partitions", "reconcile", "restored",
    "workers",
)  # fmt: skip
"""Of what can fail; `draining` is no failure."""


@dataclass(frozen=True)
class Condition:
    """Words of what stops new requests, and of what only ails."""

    unready: tuple[str, ...]
    degraded: tuple[str, ...]


class Watch:
    """Reads the condition of a gateway's parts."""

    def __init__(
        self,
        *,
        directory: Directory,
        leases: Leases,
        journal: UsageJournal,
        fleet: Fleet,
        metering_lag_s: Callable[[], float],
        usage_late: Callable[[], bool] = lambda: False,
        copies_late: Callable[[], bool],
        dead_letters: Callable[[], int] = lambda: 0,
        partitions_late: Callable[[], bool] = lambda: False,
        has_findings: Callable[[], bool] = lambda: False,
        is_restored: Callable[[], bool] = lambda: False,
        directory_stale_ms_max: int,
        stores_unseen_ms_max: int,
    ) -> None:
        self._directory = directory
        self._leases = leases
        self._journal = journal
        self._fleet = fleet
        self._metering_lag_s = metering_lag_s
        self._usage_late = usage_late
        self._copies_late = copies_late
        self._dead_letters = dead_letters
        self._partitions_late = partitions_late
        self._has_findings = has_findings
        self._is_restored = is_restored
        self._directory_stale_ms_max = directory_stale_ms_max
        self._stores_unseen_ms_max = stores_unseen_ms_max
        self.draining = False
        self.clock_off = False

    def condition(self) -> Condition:
        """The condition now."""
        unready = (
            ("draining", self.draining),
            ("journal", self._journal.failing),
            ("redis", not self._leases.reachable),
            ("clock", self.clock_off),
            (
                "directory",
                not is_trusted(
                    self._directory,
                    directory_stale_ms_max=self._directory_stale_ms_max,
                    stores_unseen_ms_max=self._stores_unseen_ms_max,
                ),
            ),
        )
        degraded = (
            ("postgres", self._directory.age_ms > POSTGRES_AWAY_MS),
            ("redis_empty", self._leases.paused),
            ("metering", self._metering_lag_s() > METERING_LATE_S),
            ("usage", self._usage_late()),
            ("second_copy", self._copies_late()),
            ("dead_letters", self._dead_letters() > 0),
            ("partitions", self._partitions_late()),
            ("reconcile", self._has_findings()),
            ("restored", self._is_restored()),
            ("workers", self._is_unserved()),
        )
        return Condition(
            tuple(word for word, true in unready if true),
            tuple(word for word, true in degraded if true),
        )

    def _is_unserved(self) -> bool:
        """Whether a model has no healthy worker, or a class has none of those reserved for it. One
        that has no workers at all is meant to be served by a provider, where one serves it."""
        models = {model.id for model in self._directory.models()}
        views = self._fleet.views()
        pools = {pool_of_worker(view.worker) for view in views}
        healthy = {pool_of_worker(view.worker) for view in views if view.healthy}
        served = {*map(model_of, pools), *hosted_models(self._directory.hosted_providers())}
        return not models or not models <= served or not pools <= healthy
