"""The `x-ratelimit-*` headers: of the scopes that limit, the tightest is shown (DESIGN 2.2)."""

from collections.abc import Callable, Sequence

from gateway.domain.scopes import ScopeUse


def limit_headers(uses: Sequence[ScopeUse]) -> list[tuple[bytes, bytes]]:
    """Headers for tokens, requests and sequences; none for what nothing limits."""
    headers: list[tuple[bytes, bytes]] = []
    tokens = _tightest(uses, lambda u: u.limits.tpm, lambda u: u.tokens)
    if tokens is not None:
        headers += _headers(b"tokens", *tokens, with_reset=True)
    requests = _tightest(uses, lambda u: u.limits.rpm, lambda u: u.requests)
    if requests is not None:
        headers += _headers(b"requests", *requests, with_reset=True)
    sequences = _tightest(uses, lambda u: u.limits.max_sequences, lambda u: u.sequences)
    if sequences is not None:
        headers += _headers(b"sequences", *sequences, with_reset=False)
    return headers


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


def _headers(
    kind: bytes, limit: int, remaining: int, reset_ms: int, *, with_reset: bool
) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"x-ratelimit-limit-" + kind, str(limit).encode()),
        (b"x-ratelimit-remaining-" + kind, str(remaining).encode()),
    ]
    if with_reset:
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
