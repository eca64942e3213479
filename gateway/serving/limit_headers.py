"""The `x-ratelimit-*` headers: of the scopes that limit, the tightest is shown (DESIGN 2.2)."""

from collections.abc import Callable, Sequence

from billing.domain.money import show_amount
from gateway.domain.scopes import ScopeUse
from gateway.serving.month_now import MonthNow

Headers = list[tuple[bytes, bytes]]


def limit_headers(uses: Sequence[ScopeUse], month: MonthNow) -> Headers:
    """Headers for tokens, requests, sequences and the month's budget; none for what nothing limits,
    nor for a budget of which the spend is not known now."""
    headers: Headers = []
    tokens = _tightest(uses, lambda u: u.limits.tpm, lambda u: u.tokens)
    if tokens is not None:
        limit, remaining, reset_ms = tokens
        headers += _headers(b"tokens", str(limit), str(remaining), reset_ms)
    requests = _tightest(uses, lambda u: u.limits.rpm, lambda u: u.requests)
    if requests is not None:
        limit, remaining, reset_ms = requests
        headers += _headers(b"requests", str(limit), str(remaining), reset_ms)
    sequences = _tightest(uses, lambda u: u.limits.max_sequences, lambda u: u.sequences)
    if sequences is not None:
        limit, remaining, _ = sequences
        headers += _headers(b"sequences", str(limit), str(remaining))
    known = [use for use in uses if use.spent_pico is not None]
    budget = _tightest(known, lambda u: u.limits.budget_pico, committed_pico)
    if budget is not None:
        whole, left = (show_amount(pico, month.currency) for pico in budget[:2])
        headers += _headers(b"budget", whole, left, month.left_ms)
    return headers


def queue_header(queue_ms: int) -> tuple[bytes, bytes]:
    """How long the request waited for a place, in ms."""
    return b"x-weir-queue-ms", str(queue_ms).encode()


def committed_pico(use: ScopeUse) -> int:
    """What of a budget is spent or reserved, as far as it is known."""
    return (use.spent_pico or 0) + (use.reserved_pico or 0)


def _tightest(
    uses: Sequence[ScopeUse],
    limit_of: Callable[[ScopeUse], int | None],
    used_of: Callable[[ScopeUse], int],
) -> tuple[int, int, int] | None:
    """Limit, what remains of it, and ms until it is whole again."""
    found: tuple[int, int, int] | None = None
    for use in uses:
        limit = limit_of(use)
        if limit is None:
            continue
        remaining = max(0, limit - used_of(use))
        if found is None or (remaining, limit) < (found[1], found[0]):
            found = (limit, remaining, use.reset_ms)
    return found


def _headers(kind: bytes, limit: str, remaining: str, reset_ms: int | None = None) -> Headers:
    headers = [
        (b"x-ratelimit-limit-" + kind, limit.encode()),
        (b"x-ratelimit-remaining-" + kind, remaining.encode()),
    ]
    if reset_ms is not None:
        headers.append((b"x-ratelimit-reset-" + kind, duration(reset_ms).encode()))
    return headers


def duration(ms: int) -> str:
    """A duration as OpenAI writes them: `250ms`, `7s`, `6m0s`, `1h0m0s`; rounded up."""
    if ms < 1000:
        return f"{max(0, ms)}ms"
    seconds = -(-ms // 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
