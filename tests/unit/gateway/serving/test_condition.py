import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hosted_examples import a_provider
from memory_ports import (
    START_MS,
    MemoryDirectory,
    MemoryFleet,
    MemoryJournal,
    MemoryLedger,
    StandingClock,
)
from msgspec import structs
from tenant_examples import a_worker

from gateway.domain.hosted import HostedModel
from gateway.domain.tenant import RequestClass
from gateway.serving.condition import WORDS, Watch
from gateway.serving.leases import Leases
from gateway.serving.store_watch import StoreState


class Parts:
    """A gateway's parts, all well."""

    def __init__(self) -> None:
        clock = StandingClock()
        self.directory = MemoryDirectory(a_worker())
        self.leases = Leases(MemoryLedger(clock), clock, renew_ms=1)
        self.journal = MemoryJournal()
        self.fleet = MemoryFleet(self.directory)
        self.lag_s = 0.0
        self.usage_late = False
        self.copies_late = False
        self.dead_letters = 0
        self.partitions_late = False
        self.has_findings = False
        self.is_restored = False
        self.watch = Watch(
            directory=self.directory,
            leases=self.leases,
            journal=self.journal,
            fleet=self.fleet,
            metering_lag_s=lambda: self.lag_s,
            usage_late=lambda: self.usage_late,
            copies_late=lambda: self.copies_late,
            dead_letters=lambda: self.dead_letters,
            partitions_late=lambda: self.partitions_late,
            has_findings=lambda: self.has_findings,
            is_restored=lambda: self.is_restored,
            directory_stale_ms_max=60_000,
            stores_unseen_ms_max=60_000,
        )

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        now = self.watch.condition()
        return now.unready, now.degraded


def test_all_well_is_no_word() -> None:
    """Ready."""
    assert Parts().words == ((), ())


def set_of(name: str, value: object) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        target: object = parts
        *path, last = name.split(".")
        for part in path:
            target = getattr(target, part)
        setattr(target, last, value)

    return change


@pytest.mark.parametrize(
    ("change", "unready", "degraded"),
    [
        (set_of("watch.draining", True), ("draining",), ()),
        (set_of("journal.failing", True), ("journal",), ()),
        (set_of("leases.watch._state", StoreState.RETURNING), ("redis",), ()),
        (set_of("leases.watch._state", StoreState.AWAY), ("redis",), ()),
        (set_of("leases.watch._state", StoreState.SUSPECT), (), ()),
        (set_of("leases._decisions._paused_until_us", START_MS * 1000 + 1), (), ("redis_empty",)),
        (set_of("watch.clock_off", True), ("clock",), ()),
        (set_of("directory.age_ms", 60_001), ("directory",), ("postgres",)),
        (set_of("directory.age_ms", 2_001), (), ("postgres",)),
        (set_of("lag_s", 10.1), (), ("metering",)),
        (set_of("usage_late", True), (), ("usage",)),
        (set_of("copies_late", True), (), ("second_copy",)),
        (set_of("dead_letters", 1), (), ("dead_letters",)),
        (set_of("partitions_late", True), (), ("partitions",)),
        (set_of("has_findings", True), (), ("reconcile",)),
        (set_of("is_restored", True), (), ("restored",)),
        (set_of("fleet.unhealthy", {"w0"}), (), ("workers",)),
        (set_of("directory.all_workers", []), (), ("workers",)),
    ],
)
def test_each_failure_has_its_word(
    change: Callable[[Parts], None], unready: tuple[str, ...], degraded: tuple[str, ...]
) -> None:
    """DESIGN 10: named on /readyz, and gone by itself once healed."""
    parts = Parts()
    change(parts)
    assert parts.words == (unready, degraded)
    assert Parts().words == ((), ())


def test_a_model_that_nobody_serves_is_named() -> None:
    """A model without a worker of its own is not hidden by another's."""
    parts = Parts()
    parts.directory.all_models.append(type(parts.directory.all_models[0])(
        id="lonely", context_tokens=1, max_output_tokens=1))  # fmt: skip
    assert parts.words == ((), ("workers",))


def test_a_model_that_a_provider_alone_serves_is_meant_so() -> None:
    """As long as it does; a model that has workers needs one of them all the same."""
    parts = Parts()
    parts.directory.all_models.append(structs.replace(parts.directory.all_models[0], id="afar"))
    served = HostedModel(name="far", price=None)
    provider = a_provider(models={"afar": served, "m": served})
    parts.directory.all_providers = [provider]
    assert "workers" not in parts.words[1]
    parts.directory.all_providers = [structs.replace(provider, enabled=False)]
    assert parts.words == ((), ("workers",))
    parts.directory.all_providers = [provider]
    parts.fleet.unhealthy = {"w0"}
    assert parts.words == ((), ("workers",))


def test_a_class_whose_own_workers_are_ill_is_named() -> None:
    """Its requests go to no other worker."""
    parts = Parts()
    parts.directory.all_workers.append(a_worker("b0", request_class=RequestClass.BATCH))
    assert "workers" not in parts.words[1]
    parts.fleet.unhealthy = {"b0"}
    assert parts.words == ((), ("workers",))


def test_every_word_has_a_row_in_the_architecture() -> None:
    """Who reads a word on /readyz finds what it means."""
    page = Path(__file__).resolve().parents[4] / "docs" / "architecture.md"
    table = page.read_text().partition("## Degraded")[2].partition("\n## ")[0]
    rows = [line.split("|")[4] for line in table.splitlines() if line.count("|") > 4]
    shown = {word for row in rows for word in re.findall(r"`([a-z_]+)`", row)}
    assert shown == {*WORDS, "draining"}
