"""A simulated or local worker's own account of every sequence, read whole over HTTP."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

import aiohttp
import msgspec

from billing.domain.reconciliation.engines import EDGE_MS
from billing.domain.reconciliation.ledgers import Account

TIMEOUT_S = 30.0
RID_CHARACTERS = 36
PATH = "/weir/ledger"


class LedgerUnreadable(Exception):
    """That URL has no ledger; the message says what was wrong with it."""


class _Entry(msgspec.Struct, frozen=True):
    rid: str
    prompt_tokens: int
    completion_tokens: int
    queued_at_ms: int
    ended_at_ms: int
    health: bool = False


class _Page(msgspec.Struct, frozen=True):
    entries: list[_Entry]
    next: int
    oldest: int


_decode = msgspec.json.Decoder(_Page).decode


@dataclass(frozen=True)
class Ledger:
    """All that one worker remembers. `since_ms`: of sequences that began before it, it may know
    nothing; nor of those that ended after `read_at_ms`. A worker that has dropped its oldest
    entries knows all that ended after the first that it kept, and so all that began after that."""

    url: str
    accounts: Sequence[Account]
    since_ms: int
    read_at_ms: int
    health_tokens: int


async def read_ledger(url: str) -> Ledger:
    """Every entry there is. Raises LedgerUnreadable."""
    base = url.rstrip("/").removesuffix(PATH)
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise LedgerUnreadable("give a worker's URL, like http://127.0.0.1:30000")
    entries: list[_Entry] = []
    since, since_ms, read_at_ms = 0, 0, time.time_ns() // 1_000_000
    try:
        async with asyncio.timeout(TIMEOUT_S), aiohttp.ClientSession() as client:
            while True:
                async with client.get(f"{base}{PATH}", params={"since": since}) as answer:
                    if answer.status != 200:
                        raise LedgerUnreadable(f"{base} answers {answer.status} for its ledger")
                    page = _decode(await answer.read())
                if not page.entries:
                    break
                if page.oldest > since:
                    since_ms = page.entries[0].ended_at_ms + EDGE_MS
                entries += page.entries
                since = page.next
    except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
        raise LedgerUnreadable(f"{base} has no ledger ({type(error).__name__})") from error
    accounts = [account for entry in entries if (account := _account(entry)) is not None]
    first_ms = min((entry.queued_at_ms for entry in entries), default=0)
    return Ledger(
        base,
        accounts,
        max(first_ms, since_ms),
        read_at_ms,
        sum(entry.prompt_tokens + entry.completion_tokens for entry in entries if entry.health),
    )


def _account(entry: _Entry) -> Account | None:
    """None where no gateway of this kind asked for it."""
    try:
        if entry.health or len(entry.rid) != RID_CHARACTERS:
            return None
        request_id = UUID(entry.rid[:32])
        choice, number = int(entry.rid[32:34]), int(entry.rid[34:])
    except ValueError:
        return None
    return Account(
        request_id,
        choice,
        number,
        entry.prompt_tokens,
        entry.completion_tokens,
        entry.queued_at_ms,
        entry.ended_at_ms,
    )
