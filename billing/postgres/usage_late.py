"""Accounts of journals that came after their requests' rows had become final by another way: from
second copies, straight from a gateway whose disk took nothing, or from an earlier place of the same
journal, which it could not take back.

Such a row stays as it is: it may be on an invoice. What the journal says, and by how much it
differs, is kept beside it: so that it is known of which end of a journal there is no row.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from billing.domain.usage_record import UsageFlag, UsageRecord
from billing.postgres.usage_insert import JournaledRecord

REAPED = UsageFlag.REAPED.value
"""Flags rows that another gateway wrote in the place of one that was gone."""
SENT_DIRECTLY = UsageFlag.SENT_DIRECTLY.value
"""Flags rows that a gateway sent past its journal. The release before sent some without it, and
kept nothing where their journal told their end too."""

_FINAL_ALREADY = """
SELECT row.request_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS bigint[]), CAST(:gateways AS text[]),
    CAST(:boots AS bigint[]), CAST(:seqs AS bigint[]))
    AS sent (request_id, at_ms, gateway_id, boot, seq)
JOIN usage_record AS row
    ON row.request_id = sent.request_id AND row.admitted_at = unix_ms_time(sent.at_ms)
WHERE row.final AND (
    :flag = ANY (row.usage_flags)
    OR row.boot IS NULL AND sent.boot IS NOT NULL
    OR row.gateway_id = sent.gateway_id AND (row.boot, row.seq) <> (sent.boot, sent.seq)
)
"""
_KEEP = """
INSERT INTO usage_late (request_id, admitted_at, tenant_id, gateway_id, boot, seq, outcome,
    prompt_tokens, output_tokens, cost_pico, currency, payload)
SELECT row.request_id, row.admitted_at, row.tenant_id, CAST(:gateway_id AS text),
    CAST(:boot AS bigint), CAST(:seq AS bigint), CAST(:outcome AS text),
    CAST(:prompt_tokens AS bigint) - row.prompt_tokens,
    CAST(:output_tokens AS bigint) - row.output_tokens,
    CAST(:cost_pico AS bigint) - row.cost_pico, CAST(:currency AS text),
    CAST(:payload AS bytea)
FROM usage_record AS row
WHERE row.request_id = :request_id AND row.admitted_at = unix_ms_time(:at_ms)
ON CONFLICT (request_id, admitted_at) DO UPDATE SET boot = EXCLUDED.boot, seq = EXCLUDED.seq
WHERE usage_late.boot IS NULL AND EXCLUDED.boot IS NOT NULL
"""


def sent_directly(record: UsageRecord, gateway_id: str) -> JournaledRecord:
    """The row of a record that its journal did not take."""
    flags = (*record.usage_flags, SENT_DIRECTLY)
    return JournaledRecord(msgspec.structs.replace(record, usage_flags=flags), gateway_id)


async def keep_late(connection: AsyncConnection, rows: Sequence[JournaledRecord]) -> int:
    """Keep those of `rows` that came too late, within the caller's transaction, in which they were
    to be written before; returns how many came too late. Repeating it adds none."""
    accounts = {
        row.record.request_id: row
        for row in rows
        if row.record.final and REAPED not in row.record.usage_flags
    }
    if not accounts:
        return 0
    sent = {
        "ids": list(accounts),
        "times": [row.record.admitted_at_ms for row in accounts.values()],
        "gateways": [row.gateway_id for row in accounts.values()],
        "boots": [row.boot for row in accounts.values()],
        "seqs": [row.seq for row in accounts.values()],
        "flag": REAPED,
    }
    late = sorted((await connection.execute(text(_FINAL_ALREADY), sent)).scalars())
    for request_id in late:
        await connection.execute(text(_KEEP), _values(accounts[request_id]))
    return len(late)


def _values(row: JournaledRecord) -> dict[str, object]:
    record = row.record
    return {
        "request_id": record.request_id,
        "at_ms": record.admitted_at_ms,
        "gateway_id": row.gateway_id,
        "boot": row.boot,
        "seq": row.seq,
        "outcome": str(record.outcome),
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": record.output_tokens,
        "cost_pico": record.cost_pico,
        "currency": record.currency,
        "payload": msgspec.msgpack.encode(record),
    }
