"""What a change of the directory ends on this gateway (B07, B09)."""

from types import SimpleNamespace
from typing import Any

from memory_ports import START_MS, StandingClock
from msgspec.structs import replace
from tenant_examples import a_key

from gateway.adapters.directory_content import DirectoryChange
from gateway.everywhere import everywhere_loops

ROTATED = replace(a_key(), rotated_to="k2", expires_at_ms=START_MS)


def ended_by(change: DirectoryChange) -> list[str]:
    """The keys whose streams end."""
    ended: list[str] = []
    part = SimpleNamespace(end_withdrawn=lambda withdrawn: ended.extend(withdrawn.keys))
    store = SimpleNamespace(register_script=lambda source: None)
    gateway: Any = SimpleNamespace(
        places=part,
        live=SimpleNamespace(end_withdrawn=lambda withdrawn: None),
        clock=StandingClock(),
        directory=SimpleNamespace(on_change=[], moved=None, unwritten_revocations=list),
        postgres=None,
        redis=store,
        gateways=None,
        journal=SimpleNamespace(gateway_id="gw"),
    )
    for loop in everywhere_loops(gateway):
        loop.close()
    gateway.directory.on_change[0](change)
    return ended


def test_a_grace_that_is_over_ends_nothing_when_its_key_changes_later() -> None:
    """One that is rotated without a grace ends; one that was rotated before only changes."""
    assert ended_by(DirectoryChange(keys=[ROTATED])) == [ROTATED.id]
    assert ended_by(DirectoryChange(keys=[ROTATED], rotated_before={ROTATED.id})) == []
    assert ended_by(DirectoryChange(whole=True, keys=[ROTATED])) == []
