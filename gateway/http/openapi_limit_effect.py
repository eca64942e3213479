"""The shape of the answer to what a change of limits would do; `gateway/serving/limit_effect.py`
makes it."""

import msgspec


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class LimitEffectAnswer(_Answer):
    """One limit, of a model where that is named. `used` is what counts against it now, null where
    nothing does or nobody knows; `over_by` how far that exceeds the new limit. Where it
    `binds_at_once` as much is in use as the new limit allows, or more: nothing is cut off, and the
    next request is admitted when use has fallen below it. Amounts of money are texts."""

    limit: str
    model: str | None
    now: int | str | None
    then: int | str | None
    used: int | str | None
    over_by: int | str | None
    binds_at_once: bool | None


class PromisedAnswer(_Answer):
    """The sum of the limits of all tenants that are not suspended, and how many have none."""

    now: int
    then: int
    without_limit_now: int
    without_limit_then: int


class AllPromisedAnswer(_Answer):
    """By limit."""

    max_sequences: PromisedAnswer
    tpm: PromisedAnswer


class PoolCapacityAnswer(_Answer):
    """What all healthy workers can hold at once, by the queue's ceilings: sequences, and tokens of
    KV cache. Workers without a ceiling are in neither sum. `tokens_last_minute` is what tenants
    were charged, null where it is not known: the most that a pool could do in a minute is not
    measured."""

    workers: int
    without_ceiling: int
    sequences: int
    kv_tokens: int
    sequences_running: int
    tokens_last_minute: int | None


class LimitsEffectAnswer(_Answer):
    """What a change of a tenant's limits would do. `pool` is null where a queue could not be looked
    at; `degraded` says what is not known: `redis`, or `queue:` and a pool."""

    tenant_id: str
    suspended: bool
    limits: list[LimitEffectAnswer]
    promised: AllPromisedAnswer
    pool: PoolCapacityAnswer | None
    degraded: list[str]
