"""Trying dead letters again: a record that Postgres takes now is a row, and its letter resolved."""

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from billing.domain.usage_record import UsageRecord
from billing.postgres.dead_letters import DeadLetter, lock_open, note_retry
from billing.postgres.shipments import insert_isolating
from billing.postgres.usage_insert import JournaledRecord

LETTERS_PER_TRANSACTION = 100

Read = Callable[[DeadLetter], UsageRecord | None]
"""Reads a letter's record. None where it is no usage record, as an admission; raises ValueError
where it still cannot be read."""


class Retried(NamedTuple):
    """What came of one letter: `reason` is None where it is resolved."""

    id: int
    reason: str | None


async def retry(engine: AsyncEngine, read: Read, letter_id: int | None = None) -> list[Retried]:
    """Try an open letter again, or all of them; what is resolved already is passed over.

    Each is a row and resolved, or neither. A row that is there already is left as it is, and its
    letter resolved. Raises what the driver raises; letters of earlier transactions stay resolved.
    """
    done: list[Retried] = []
    while True:
        after_id = done[-1].id if done else 0
        async with engine.begin() as connection:
            letters = await lock_open(
                connection, letter_id=letter_id, after_id=after_id, limit=LETTERS_PER_TRANSACTION
            )
            results = []
            for each in letters:
                try:
                    record = read(each.letter)
                except ValueError:
                    results.append(Retried(each.id, "unreadable"))
                    continue
                refused = []
                if record is not None:
                    refused = await insert_isolating(connection, [_row(each.letter, record)])
                results.append(Retried(each.id, refused[0].reason if refused else None))
            for result in results:
                await note_retry(connection, result.id, result.reason)
        done += results
        if letter_id is not None or len(letters) < LETTERS_PER_TRANSACTION:
            return done


def _row(letter: DeadLetter, record: UsageRecord) -> JournaledRecord:
    """With the place in the journal that the letter names; a spare one has none."""
    boot, _, seq = letter.source.partition(":")
    if boot.isdigit() and seq.isdigit():
        return JournaledRecord(record, letter.gateway_id, int(boot), int(seq))
    return JournaledRecord(record, letter.gateway_id)
