"""A tenant, its key, a model and workers for tests, each with what the test is about."""

import hashlib

from gateway.domain.tenant import ApiKey, EngineKind, Limits, Model, RequestClass, Tenant, Worker

SECRET = "sk-weir-secret"
AT_ONCE = Limits(max_queued=0)
"""Limits of a key whose requests do not wait for room: their refusals are told at once."""
COUNTED = Limits(tpm=10**6)
"""Limits that refuse nothing, and that a prompt is counted for."""


def a_tenant(limits: Limits | None = None, **changes: object) -> Tenant:
    """`acme`, without limits unless given."""
    base: dict[str, object] = {"id": "acme", "name": "Acme", "limits_version": 1}
    return Tenant(**{**base, "limits": limits or Limits(), **changes})  # type: ignore[arg-type]


def a_key(limits: Limits | None = None, **changes: object) -> ApiKey:
    """A key of `acme` whose secret is SECRET; its requests do not wait unless limits are given."""
    base: dict[str, object] = {
        "id": "key-1",
        "tenant_id": "acme",
        "name": "first",
        "digest": hashlib.sha256(SECRET.encode()).digest(),
        "request_class": RequestClass.INTERACTIVE,
        "limits_version": 1,
    }
    return ApiKey(**{**base, "limits": limits or AT_ONCE, **changes})  # type: ignore[arg-type]


def a_model(**changes: object) -> Model:
    """`m`: a context of 1,000, at most 100 tokens unless asked otherwise, 20 expected."""
    base: dict[str, object] = {
        "id": "m",
        "context_tokens": 1000,
        "max_output_tokens": 100,
        "default_output_tokens": 20,
    }
    return Model(**{**base, **changes})  # type: ignore[arg-type]


def a_worker(name: str = "w0", **changes: object) -> Worker:
    """A worker of `m` that speaks SGLang."""
    base: dict[str, object] = {"id": name, "model": "m", "url": f"http://{name}:30000"}
    return Worker(**{**base, "kind": EngineKind.SGLANG, **changes})  # type: ignore[arg-type]
