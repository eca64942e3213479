"""The body that a worker is sent for one choice of a request."""

import hashlib
import hmac

import msgspec

from gateway.domain.hosted import HostedTarget
from gateway.domain.tenant import CacheIsolation, EngineKind, Tenant, Worker
from gateway.wire.hosted_body import hosted_body
from gateway.wire.request import CompletionRequest, RawFields
from gateway.wire.seed import seed_of

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


def cache_salt(secret: str, tenant: Tenant) -> str | None:
    """What keeps a tenant's prefix cache apart from every other's; None where it chose to share.

    Shared prefix caches tell by their timing what others asked (CVE-2025-46570).
    """
    if tenant.limits.cache_isolation is CacheIsolation.SHARED:
        return None
    return hmac.new(secret.encode(), tenant.id.encode(), hashlib.sha256).hexdigest()[:32]


def upstream_body(
    request: CompletionRequest,
    *,
    worker: Worker,
    prompt: int,
    upstream_id: str,
    max_tokens: int,
    salt: str | None,
    priority: int | None = None,
    sample: int = 0,
) -> bytes:
    """One choice as one stream: the tenant's fields, and the gateway's own over them. `sample`
    counts the choices of one prompt."""
    if isinstance(worker, HostedTarget):
        return hosted_body(
            request, target=worker, prompt=prompt, max_tokens=max_tokens, sample=sample
        )
    options = {"include_usage": True}
    own: dict[str, object] = {
        "model": request.model,
        "stream": True,
        "stream_options": options,
        "max_tokens": max_tokens,
    }
    if worker.kind is EngineKind.SGLANG:
        options["continuous_usage_stats"] = True
        own["rid"] = upstream_id
        if salt is not None:
            own["cache_salt"] = salt
        if priority is not None:
            own["priority"] = priority
    fields: RawFields = request.forward | seed_of(request, sample)
    if request.endpoint == "completions":
        fields["prompt"] = request.prompts[prompt]
    for name, value in own.items():
        fields[name] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(fields)
