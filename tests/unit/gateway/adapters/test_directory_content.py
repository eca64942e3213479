"""What the directory's maps hold after rows came. The database itself would refuse these."""

from types import SimpleNamespace
from typing import Any

import pytest
from hosted_examples import a_provider
from msgspec import to_builtins
from tenant_examples import a_worker

from gateway.adapters.directory_content import DirectoryContent
from gateway.adapters.directory_queries import DirectoryRows
from gateway.domain.hosted import HostedProvider
from gateway.domain.tenant import Worker

BAD = a_worker("bad", url="http://AI.example:443")
GOOD = a_worker("good")


def a_row(subject: Worker | HostedProvider, *, removed: bool = False) -> Any:
    """The row of a worker or provider."""
    removed_at = "2026-01-01" if removed else None
    return SimpleNamespace(**to_builtins(subject), removed_at=removed_at)


def test_a_worker_at_a_providers_server_is_never_used(caplog: pytest.LogCaptureFixture) -> None:
    """Whichever of the two came first, and until the provider is gone; one line says so."""
    content = DirectoryContent()
    content.update(DirectoryRows(workers=[a_row(BAD), a_row(GOOD)]))
    assert set(content.workers) == {"bad", "good"}
    content.update(DirectoryRows(providers=[a_row(a_provider(enabled=False))]))
    assert set(content.workers) == {"good"}
    content.update(DirectoryRows(workers=[a_row(BAD)]))
    assert set(content.workers) == {"good"}
    content.update(DirectoryRows(providers=[a_row(a_provider(), removed=True)]))
    assert set(content.workers) == {"bad", "good"}
    assert [record.getMessage() for record in caplog.records] == [
        "directory: worker bad is at a hosted provider's server and is not used"
    ]


def test_a_whole_load_says_nothing_twice(caplog: pytest.LogCaptureFixture) -> None:
    """A gateway loads everything again after each outage."""
    rows = (DirectoryRows(workers=[a_row(BAD)]), DirectoryRows(providers=[a_row(a_provider())]))
    content = DirectoryContent()
    for _ in range(3):
        for each in rows:
            content.update(each)
        assert content.workers == {}
        content = DirectoryContent(content)
    assert len(caplog.records) == 1


def test_an_unreadable_providers_server_is_a_providers_too() -> None:
    """A newer version may have written what this one cannot read."""
    content = DirectoryContent()
    row = a_row(a_provider())
    row.output_limit_field = "max_new_tokens"
    content.update(DirectoryRows(workers=[a_row(BAD), a_row(GOOD)], providers=[row]))
    assert (content.providers, set(content.workers)) == ({}, {"good"})
