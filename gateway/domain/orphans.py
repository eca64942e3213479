"""Requests whose gateway is gone: what is recorded in its place, and until when.

A gateway that nobody has seen for `GONE_MS` may be dead, paused, or only cut off from Redis. What
its second copy knows becomes a provisional row. The journal's own account replaces that once, if it
comes within `FINAL_MS`; after that the row is final as it is.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from billing.domain.policy import CURRENT_POLICY, is_billable
from billing.domain.usage_record import Outcome, UsageFlag, UsageRecord, UsageSource
from gateway.domain.lease import Admitted
from gateway.domain.presence import GONE_MS, Heartbeat, Standing

FINAL_MS = 24 * 3_600_000
REAPED = UsageFlag.REAPED.value
"""Flags every row that another gateway wrote in the place of one that is gone."""
END_UNKNOWN = UsageFlag.END_UNKNOWN.value
"""And those of them whose request had not ended, as far as its copy knew."""


class Orphan(NamedTuple):
    """A gateway that was not seen for long. Instants are of the store's time."""

    gateway_id: str
    standing: Standing
    gone_ms: int
    """For how long."""


def orphans(
    gateways: Mapping[str, Standing], *, own: str, now_ms: int, gone_after_ms: int = GONE_MS
) -> list[Orphan]:
    """Those of a whole list that are gone, in order; never the one that looks."""
    return [
        Orphan(name, standing, now_ms - standing.seen_ms)
        for name, standing in sorted(gateways.items())
        if name != own and standing.seen_ms <= now_ms - gone_after_ms
    ]


def may_judge(*, looked_ms: int | None, now_ms: int, period_ms: int) -> bool:
    """Whether absence means something to one who looks now and looked at `looked_ms`: who was away
    from the store itself (None: who has just begun), or whose store was away or had its clock set,
    sees everybody as old and first gives them time to say that they are here."""
    return looked_ms is not None and 0 <= now_ms - looked_ms <= 3 * period_ms


def lost_record(
    entry: Admitted, *, now_ms: int, prompt_tokens: int = 0, output_tokens: int = 0
) -> UsageRecord:
    """How a request ends whose gateway died. What it used is what was last told of it, nothing
    where nothing was; nobody pays for it, and nothing costs nothing at any price.

    What was told may be the engine's usage or deltas that were counted: it is recorded as the less
    of the two.
    """
    is_told = prompt_tokens > 0 or output_tokens > 0
    cost_pico = None if entry.currency is None else 0
    return UsageRecord(
        request_id=entry.request_id,
        tenant_id=entry.tenant_id,
        api_key_id=entry.api_key_id,
        model=entry.model,
        request_class=entry.request_class,
        admitted_at_ms=entry.admitted_at_ms,
        ended_at_ms=now_ms,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        sequences=entry.sequences,
        queue_ms=entry.queue_ms,
        outcome=Outcome.GATEWAY_LOST,
        usage_source=UsageSource.COUNTED if is_told else UsageSource.ESTIMATED,
        billable=is_billable(Outcome.GATEWAY_LOST, output_tokens),
        billing_policy=CURRENT_POLICY,
        cost_pico=cost_pico,
        list_cost_pico=None if is_told else cost_pico,
        currency=entry.currency,
    )


def needs_rating(record: UsageRecord) -> bool:
    """Whether a record of `lost_record` lacks what its tokens would have cost."""
    return record.list_cost_pico is None and record.currency is not None


def provisional(record: UsageRecord, *, has_ended: bool) -> UsageRecord:
    """A record as another gateway writes it. `has_ended`: it is the request's own end."""
    flags = {*record.usage_flags, REAPED, *(() if has_ended else (END_UNKNOWN,))}
    return replace(record, final=False, usage_flags=tuple(sorted(flags)))


def is_provisional_end(record: UsageRecord) -> bool:
    """Whether it says how the request ended: it may take the place of one that does not."""
    return END_UNKNOWN not in record.usage_flags


def is_shipped(journal: Heartbeat | None, shipped: Mapping[int, int], *, open_count: int) -> bool:
    """Whether all that a journal had on its disk, as it last said, is in Postgres, whose watermark
    of each boot is `shipped`, and nothing of it is open: by the sums of what was shipped, or since
    a later boot has ended what was."""
    if journal is None or shipped.get(journal.boot, 0) < journal.durable_seq:
        return False
    return open_count <= 0 or any(boot > journal.boot for boot in shipped)


def may_be_forgotten(
    orphan: Orphan,
    shipped: Mapping[int, int],
    *,
    open_count: int,
    provisional_rows: int,
    final_after_ms: int,
) -> bool:
    """Whether nothing more is expected of a gateway whose copies are all rows: its journal is in
    Postgres, or was waited for long enough and no row of its is provisional any more."""
    if provisional_rows:
        return False
    if is_shipped(orphan.standing.journal, shipped, open_count=open_count):
        return True
    return orphan.gone_ms >= final_after_ms
