"""Tenants, API keys, models, workers and their limits, as the gateway knows them."""

from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

NonNegative = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Weight = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Budget = Annotated[
    str,
    msgspec.Meta(
        description="An amount in the tenant's currency, in plain digits with at most its decimals",
        examples=["500.00"],
        extra_json_schema={"pattern": r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,3})?$"},
    ),
]
"""Money as people write it; `limits_check` reads it with its currency before it is stored."""
TaxRate = Annotated[
    str,
    msgspec.Meta(
        description="Percent, in plain digits with at most three decimals; 100 at most",
        examples=["19"],
        extra_json_schema={"pattern": r"^(100(\.0{1,3})?|(0|[1-9][0-9]?)(\.[0-9]{1,3})?)$"},
    ),
]
PaymentTermsDays = Annotated[int, msgspec.Meta(ge=0, le=365)]


MAX_QUEUED = 64
"""So many requests of a tenant may wait where nobody says how many."""
MAX_WAIT_MS = 10_000
"""So long they wait where nobody says how long."""


class RequestClass(StrEnum):
    """What a request is to the queue: interactive goes before batch."""

    INTERACTIVE = "interactive"
    BATCH = "batch"


class DataPolicy(StrEnum):
    """Where a tenant's prompts may go."""

    SELF_HOSTED_ONLY = "self_hosted_only"
    HOSTED_ALLOWED = "hosted_allowed"


class CacheIsolation(StrEnum):
    """Whether a tenant's prompts may share a prefix cache with others'."""

    TENANT = "tenant"
    SHARED = "shared"


class ModelLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What narrows one model within a tenant or key. None is no limit, 0 is none at all."""

    max_sequences: NonNegative | None = None
    tpm: NonNegative | None = None
    rpm: NonNegative | None = None
    monthly_budget: Budget | None = None
    max_prompt_tokens: NonNegative | None = None
    max_output_tokens: NonNegative | None = None


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of a tenant or of a key: the body of `PUT .../limits`, which replaces the whole.

    `max_sequences` counts sequences running at once, `tpm` tokens charged in any trailing 60 s,
    `rpm` requests admitted in any trailing 60 s; `monthly_budget` is an amount in the tenant's
    currency for a month of its time zone; `max_prompt_tokens` bounds a request's prompts together,
    `max_output_tokens` each of its choices; `max_queued` counts requests that wait, each of them
    for `max_wait_ms` at most. None is no limit, 0 is none at all.
    """

    max_sequences: NonNegative | None = None
    tpm: NonNegative | None = None
    rpm: NonNegative | None = None
    max_queued: NonNegative | None = None
    """None is 64 for a tenant, whose waiting is always bounded, and for a key whatever its tenant's
    is; the same of `max_wait_ms`, which is 10 s then."""
    max_wait_ms: NonNegative | None = None
    weight: Weight = 1
    monthly_budget: Budget | None = None
    max_prompt_tokens: NonNegative | None = None
    max_output_tokens: NonNegative | None = None
    data_policy: DataPolicy | None = None
    """None is `self_hosted_only` for a tenant, and for a key whatever its tenant's is."""
    cache_isolation: CacheIsolation = CacheIsolation.TENANT
    models: dict[str, ModelLimits] = {}


class TenantLimits(Limits, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of a tenant: as a key's, but nothing waits without a bound in number and time."""

    max_queued: NonNegative = MAX_QUEUED
    max_wait_ms: NonNegative = MAX_WAIT_MS


class BillingProfile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Whom an invoice is made out to, and on what terms."""

    legal_name: str | None = None
    email: str | None = None
    address: tuple[str, ...] = ()
    """Lines, as printed."""
    country: str | None = None
    """ISO 3166 alpha-2."""
    tax_id: str | None = None
    tax_rate: TaxRate | None = None
    """None is 0."""
    tax_name: str | None = None
    """What the tax is called on the invoice; None is `Tax`."""
    tax_note: str | None = None
    """Printed below the total, such as why no tax is charged."""
    payment_terms_days: PaymentTermsDays | None = None
    """An invoice is due so many days after it was issued; None is 30."""
    reference: str | None = None
    """What the customer wants on its invoices, such as the number of an order."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A customer. `limits_version` grows with every change of its limits."""

    id: str
    name: str
    suspended: bool = False
    currency: str = "USD"
    time_zone: str = "UTC"
    billing_profile: BillingProfile = BillingProfile()
    limits: Limits
    limits_version: int


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's API key; its secret is known only as a SHA-256 digest."""

    id: str
    tenant_id: str
    name: str
    digest: bytes
    request_class: RequestClass
    """The highest class its requests may have, and the one they have unless they ask for less."""
    models: tuple[str, ...] | None = None
    """Models it may use; None is all."""
    ip_allow: tuple[str, ...] | None = None
    """Networks (CIDR) it may be used from; None is all."""
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    rotated_to: str | None = None
    """The key that replaces it; it still works until `expires_at_ms`."""
    secret_hint: str = ""
    """The secret's last four characters, for people to tell keys apart."""
    created_at_ms: int = 0
    limits: Limits
    limits_version: int


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A served model."""

    id: str
    context_tokens: int
    """Longest prompt + output an engine of this model takes."""
    max_output_tokens: int
    """The most output a request without its own maximum may generate."""
    default_output_tokens: int = 256
    """What such a request is expected to generate, for its reservation, until it is learned."""


class EngineKind(StrEnum):
    """What a worker speaks beyond OpenAI's HTTP."""

    SGLANG = "sglang"
    """SGLang's HTTP: abort by id, continuous usage, `/v1/loads`. The local and simulated engines
    speak it too."""
    OPENAI = "openai"
    """Plain OpenAI-compatible HTTP: a leave closes the connection, no loads."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One engine that serves one model at a base URL (without `/v1`)."""

    id: str
    model: str
    url: str
    kind: EngineKind = EngineKind.SGLANG
    engine: str = "sglang"
    """As registered: `sglang`, `local`, `simulated` or `openai`."""
    api_key: str | None = None
    draining: bool = False
    request_class: RequestClass | None = None
    """The class that it is reserved for; None: it serves both, but for a class that has workers of
    its own (`pools.pool_of`)."""

    def __repr__(self) -> str:
        """Without its key: a worker may end up in a log or a traceback."""
        return f"{type(self).__name__}(id={self.id!r}, model={self.model!r}, url={self.url!r})"

    @property
    def provider(self) -> str:
        """Who runs it, as usage records say it: `self`, or `hosted:<name>`."""
        return "self"

    def endpoint(self, path: str) -> str:
        """The address of an endpoint such as `/v1/completions`."""
        return self.url + path


def data_policy(tenant: Tenant, key: ApiKey) -> DataPolicy:
    """Where a request's prompt may go: to a hosted provider only where the tenant allows it and the
    key does not forbid it."""
    allowed = (
        tenant.limits.data_policy is DataPolicy.HOSTED_ALLOWED
        and key.limits.data_policy is not DataPolicy.SELF_HOSTED_ONLY
    )
    return DataPolicy.HOSTED_ALLOWED if allowed else DataPolicy.SELF_HOSTED_ONLY


class Waiting(NamedTuple):
    """How many requests of a tenant may wait, and how long each of them may."""

    max_queued: int
    max_wait_ms: int


def waiting_of(tenant: Limits, key: Limits | None = None) -> Waiting:
    """What holds of a tenant's limits, and of its key's where those are narrower. A key without
    limits of its own leaves it at the tenant's."""
    max_queued = MAX_QUEUED if tenant.max_queued is None else tenant.max_queued
    max_wait_ms = MAX_WAIT_MS if tenant.max_wait_ms is None else tenant.max_wait_ms
    if key is not None and key.max_queued is not None:
        max_queued = min(max_queued, key.max_queued)
    if key is not None and key.max_wait_ms is not None:
        max_wait_ms = min(max_wait_ms, key.max_wait_ms)
    return Waiting(max_queued, max_wait_ms)
