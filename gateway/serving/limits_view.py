"""What a tenant sees of its limits, and an admin of all tenants' use."""

from collections.abc import Sequence

from gateway.domain.scopes import ScopeUse, scopes_of
from gateway.errors import Overloaded
from gateway.serving.authenticate import Caller
from gateway.serving.ports import Ledger, LedgerUnavailable

Json = dict[str, object]


def use_view(use: ScopeUse) -> Json:
    """One scope's limits and use. `null` is no limit."""
    return {
        "max_sequences": use.limits.max_sequences,
        "sequences_running": use.sequences,
        "tpm": use.limits.tpm,
        "tokens_last_minute": use.tokens,
        "rpm": use.limits.rpm,
        "requests_last_minute": use.requests,
        "reset_ms": use.reset_ms,
    }


async def limits_view(caller: Caller, ledger: Ledger) -> Json:
    """The body of `GET /v1/limits`: tenant, key, and each model that is narrowed.

    Raises Overloaded(admission_unavailable) where the store cannot be reached.
    """
    names = sorted({*caller.tenant.limits.models, *caller.key.limits.models})
    scopes = list(scopes_of(caller.tenant, caller.key, "")[:2])
    for name in names:
        scopes += scopes_of(caller.tenant, caller.key, name)[2:]
    try:
        uses = await ledger.observe(caller.tenant.id, scopes)
    except LedgerUnavailable as error:
        raise Overloaded(
            "limits cannot be read at the moment", code="admission_unavailable"
        ) from error
    return {
        "object": "limits",
        "tenant": _scope_view(uses[0], caller.tenant.limits.max_queued),
        "key": _scope_view(uses[1], caller.key.limits.max_queued),
        "models": _models_view(names, uses[2:]),
        "queue": {"queued": 0, "place": None},
    }


def _scope_view(use: ScopeUse, max_queued: int) -> Json:
    return {**use_view(use), "max_queued": max_queued, "sequences_queued": 0}


def _models_view(names: Sequence[str], uses: Sequence[ScopeUse]) -> Json:
    return {
        name: {"tenant": use_view(uses[2 * i]), "key": use_view(uses[2 * i + 1])}
        for i, name in enumerate(names)
    }
