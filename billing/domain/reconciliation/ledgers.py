"""REC-3, request by request: what an engine wrote down of each sequence against its attempt."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from billing.domain.reconciliation.findings import Check, Finding, Verdict, terms
from billing.domain.usage_record import UsageSource


@dataclass(frozen=True)
class Account:
    """What an engine says of one sequence: the `number`th that was opened for a choice."""

    request_id: UUID
    choice: int
    number: int
    prompt_tokens: int
    output_tokens: int
    queued_at_ms: int
    ended_at_ms: int


@dataclass(frozen=True)
class Ran:
    """An attempt on a worker of ours. `number` counts those of its choice."""

    request_id: UUID
    choice: int
    number: int
    worker_id: str
    started_at_ms: int
    ended_at_ms: int
    prompt_tokens: int
    output_tokens: int
    usage_source: str | None

    @property
    def is_exact(self) -> bool:
        """Whether its counts are the engine's own last word."""
        return self.usage_source == UsageSource.ENGINE_FINAL


class Fate(StrEnum):
    """What is known of a request whose sequence has no attempt."""

    GATEWAY_LOST = "gateway_lost"
    OPEN = "still_open"


def check_ledger(
    accounts: Sequence[Account],
    attempts: Sequence[Ran],
    fates: Mapping[UUID, Fate],
    *,
    since_ms: int,
    until_ms: int,
    health_tokens: int = 0,
) -> Verdict:
    """One worker's ledger, which is whole from `since_ms` to `until_ms`, against the attempts of a
    period."""
    by_key = {(each.request_id, each.choice, each.number): each for each in attempts}
    sizes = dict.fromkeys(("lower_bound", "gateway_lost", "still_open"), 0)
    findings: list[Finding] = []
    met: set[tuple[UUID, int, int]] = set()
    workers: set[str] = set()
    for account in accounts:
        key = (account.request_id, account.choice, account.number)
        ran = by_key.get(key)
        if ran is not None:
            met.add(key)
            workers.add(ran.worker_id)
            findings += _of_pair(account, ran)
            if not ran.is_exact:
                sizes["lower_bound"] += max(0, _tokens(account) - _tokens(ran))
            continue
        fate = fates.get(account.request_id)
        if fate is None and _tokens(account):
            what = "the engine ran it and nobody recorded it"
            findings.append(_finding("engine", account.request_id, _tokens(account), what))
        elif fate in (Fate.GATEWAY_LOST, Fate.OPEN):
            sizes[fate.value] += _tokens(account)
    findings += [
        _finding(
            each.worker_id,
            each.request_id,
            _tokens(each),
            "it is recorded as the engine's own count, and the engine knows nothing of it",
        )
        for key, each in by_key.items()
        if key not in met
        and each.worker_id in workers
        and each.started_at_ms >= since_ms
        and each.ended_at_ms < until_ms
        and each.is_exact
        and _tokens(each)
    ]
    return Verdict(
        Check.ENGINES,
        terms(
            ledger_sequences=len(accounts),
            ledger_matched=len(met),
            lower_bound=sizes["lower_bound"],
            gateway_lost=sizes["gateway_lost"],
            still_open=sizes["still_open"],
            health=health_tokens,
        ),
        tuple(findings),
    )


def _of_pair(account: Account, ran: Ran) -> Iterator[Finding]:
    for name, counted, recorded in (
        ("prompt", account.prompt_tokens, ran.prompt_tokens),
        ("output", account.output_tokens, ran.output_tokens),
    ):
        differs = recorded != counted if ran.is_exact else recorded > counted
        if differs:
            what = f"attempt {ran.number} of choice {ran.choice} says {recorded} {name} tokens, the"
            what += f" engine {counted}"
            yield _finding(ran.worker_id, ran.request_id, abs(recorded - counted), what)


def _tokens(each: Account | Ran) -> int:
    return each.prompt_tokens + each.output_tokens


def _finding(subject: str, request_id: UUID, size: int, what: str) -> Finding:
    return Finding(Check.ENGINES, subject, request_id, size, "tokens", what)
