"""The directory's maps, and how rows and revocations change them. No I/O."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from sqlalchemy import Row

from billing.domain.price_book import Membership, Price, PriceBook
from billing.postgres.prices import member_from, price_from
from gateway.adapters.directory_queries import DirectoryRows
from gateway.adapters.directory_rows import (
    hosted_provider_from,
    key_from,
    model_from,
    tenant_from,
    worker_from,
)
from gateway.adapters.revocations import Revocation
from gateway.domain.hosted import HostedProvider
from gateway.domain.origin import at_no_provider
from gateway.domain.tenant import ApiKey, Limits, Model, Tenant, Worker

Value = TypeVar("Value")

WITHDRAWN = 2**63
"""A row that is withdrawn itself knows of every withdrawal."""
KNOWN_LIMITS_MAX = 10_000
"""Different limits that are kept to be shared by those who have the same."""

logger = logging.getLogger(__name__)


@dataclass
class DirectoryChange:
    """What is new in the directory. `whole` says that it is everything, so that what is absent
    exists no more."""

    whole: bool = False
    tenants: list[Tenant] = field(default_factory=list)
    keys: list[ApiKey] = field(default_factory=list)
    rotated_before: set[str] = field(default_factory=set)
    """Of keys, by their ids, those that were known as rotated already."""
    fleet: bool = False
    """Models, workers or hosted providers."""
    prices: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.whole or self.tenants or self.keys or self.fleet or self.prices)

    def take(self, later: "DirectoryChange") -> None:
        """Add what a later batch of the same look found."""
        self.tenants.extend(later.tenants)
        self.keys.extend(later.keys)
        self.rotated_before |= later.rotated_before
        self.fleet |= later.fleet
        self.prices |= later.prices


class DirectoryContent:
    """What a gateway knows of tenants, keys, models, workers, hosted providers and prices."""

    def __init__(self, earlier: "DirectoryContent | None" = None) -> None:
        """Empty, but for the revocations that `earlier` knows: they hold against older rows."""
        self.tenants: dict[str, Tenant] = {}
        self.models: dict[str, Model] = {}
        self.workers: dict[str, Worker] = {}
        """Those that may be used: none at a hosted provider's server, whatever Postgres says."""
        self.providers: dict[str, HostedProvider] = {}
        self._prices: dict[int, Price] = {}
        self._members: dict[int, Membership] = {}
        self._price_book: PriceBook | None = None
        self._registered: dict[str, Worker] = {}
        self._provider_urls: dict[str, str] = {}
        self._said_aside: set[str] = set() if earlier is None else earlier._said_aside  # noqa: SLF001
        self._keys: dict[bytes, ApiKey] = {}
        self._digests: dict[str, bytes] = {}
        self._known_until: dict[tuple[str, str], int] = {}
        """Of keys and tenants, up to which change their rows know of every withdrawal."""
        self._revocations: dict[tuple[str, str], Revocation] = (
            {} if earlier is None else earlier._revocations  # noqa: SLF001 - its own class
        )
        self._known_limits: dict[str, Limits] = {}

    def key_by_digest(self, digest: bytes) -> ApiKey | None:
        """The key with that digest."""
        return self._keys.get(digest)

    @property
    def price_book(self) -> PriceBook:
        """Every price that was read, put in order when it is first asked for."""
        if self._price_book is None:
            self._price_book = PriceBook(self._prices.values(), self._members.values())
        return self._price_book

    def update(self, rows: DirectoryRows) -> DirectoryChange:
        """Take `rows` for what has changed. A row that this version cannot read (a newer one may
        have written it) is left out, so that it is refused rather than guessed at."""
        if len(self._known_limits) > KNOWN_LIMITS_MAX:
            self._known_limits.clear()
        for row in rows.models:
            _put(self.models, row.id, row, model_from)
        for row in rows.workers:
            _put(self._registered, row.id, row, worker_from)
        for row in rows.providers:
            _put(self.providers, row.name, row, hosted_provider_from)
            # Also of one that cannot be read: its server is a provider's all the same.
            _put(self._provider_urls, row.name, row, lambda row: str(row.url))
        if rows.workers or rows.providers:
            self._set_workers_aside()
        if rows.prices:
            self._prices |= {row.id: price_from(row) for row in rows.prices}
        if rows.members:
            self._members |= {row.id: member_from(row) for row in rows.members}
        if rows.prices or rows.members:
            self._price_book = None
        tenants = [self._put_tenant(row) for row in rows.tenants]
        known = [self._keys.get(bytes(row.digest)) for row in rows.keys]
        keys = [self._put_key(row) for row in rows.keys]
        return DirectoryChange(
            tenants=[tenant for tenant in tenants if tenant is not None],
            keys=[key for key in keys if key is not None],
            rotated_before={key.id for key in known if key is not None and key.rotated_to},
            fleet=bool(rows.models or rows.workers or rows.providers),
            prices=bool(rows.prices or rows.members),
        )

    def _set_workers_aside(self) -> None:
        self.workers = at_no_provider(self._registered.values(), self._provider_urls.values())
        aside = self._registered.keys() - self.workers.keys()
        for worker_id in sorted(aside - self._said_aside):
            logger.error(
                "directory: worker %s is at a hosted provider's server and is not used", worker_id
            )
        self._said_aside |= aside

    def revoke(
        self, revocations: Iterable[Revocation], *, forget_before_ms: int
    ) -> DirectoryChange:
        """Apply revocations that the rows in memory do not know of, and remember them for rows
        that are read later."""
        change = DirectoryChange()
        for revocation in revocations:
            subject = (revocation.kind, revocation.subject_id)
            known = self._revocations.get(subject)
            if known is None or known.changed < revocation.changed:
                self._revocations[subject] = revocation
                self._apply(revocation, change)
        for subject, revocation in list(self._revocations.items()):
            if revocation.at_ms < forget_before_ms:
                del self._revocations[subject]
        return change

    def revoked_beyond(self, changed: int) -> frozenset[int]:
        """The numbers of the revocations that are newer than that change."""
        return frozenset(
            revocation.changed
            for revocation in self._revocations.values()
            if revocation.changed > changed
        )

    def unwritten_revocations(self) -> list[Revocation]:
        """Those that the rows in memory do not know of."""
        return [
            revocation
            for subject, revocation in self._revocations.items()
            if self._overtaken(subject) is not None
        ]

    def apply_known_revocations(self) -> None:
        """Apply those again that came while rows were still being read."""
        for revocation in self._revocations.values():
            self._apply(revocation, DirectoryChange())

    def _apply(self, revocation: Revocation, change: DirectoryChange) -> None:
        if self._overtaken((revocation.kind, revocation.subject_id)) is None:
            return
        if revocation.kind == "key":
            key = self._keys.get(self._digests.get(revocation.subject_id, b""))
            if key is not None:
                self._keys[key.digest] = _revoked(key, revocation)
                change.keys.append(self._keys[key.digest])
        else:
            tenant = self.tenants.get(revocation.subject_id)
            if tenant is not None:
                self.tenants[tenant.id] = replace(tenant, suspended=True)
                change.tenants.append(self.tenants[tenant.id])

    def _put_tenant(self, row: Row[Any]) -> Tenant | None:
        is_suspended = row.suspended_at is not None
        self._known_until["tenant", row.id] = WITHDRAWN if is_suspended else row.resumed_change
        try:
            tenant = tenant_from(row, self._known_limits)
        except (msgspec.ValidationError, ValueError):
            logger.exception("directory: tenant %s cannot be read and is left out", row.id)
            self.tenants.pop(row.id, None)
            return None
        if self._overtaken(("tenant", row.id)) is not None:
            tenant = replace(tenant, suspended=True)
        self.tenants[tenant.id] = tenant
        return tenant

    def _put_key(self, row: Row[Any]) -> ApiKey | None:
        self._known_until["key", row.id] = 0 if row.revoked_at is None else WITHDRAWN
        digest = bytes(row.digest)
        try:
            key = key_from(row, self._known_limits)
        except (msgspec.ValidationError, ValueError):
            logger.exception("directory: key %s cannot be read and is left out", row.id)
            self._keys.pop(digest, None)
            return None
        self._keys[digest] = key
        self._digests[key.id] = digest
        revocation = self._overtaken(("key", row.id))
        if revocation is not None:
            self._keys[digest] = key = _revoked(key, revocation)
        return key

    def _overtaken(self, subject: tuple[str, str]) -> Revocation | None:
        """The revocation of `subject` that its row in memory does not know of. Not the row's
        `changed` says so: a row of a restored backup that is changed is newer than what it lacks.
        A key is revoked for good, or has ended by then as it was rotated; a tenant is resumed."""
        revocation = self._revocations.get(subject)
        known_until = self._known_until.get(subject, WITHDRAWN)
        if revocation is None or revocation.changed <= known_until:
            return None
        key = self._keys.get(self._digests.get(revocation.subject_id, b""))
        if revocation.kind == "key" and key is not None and key.expires_at_ms is not None:
            return None if key.expires_at_ms <= revocation.at_ms else revocation
        return revocation


def _revoked(key: ApiKey, revocation: Revocation) -> ApiKey:
    return replace(key, revoked_at_ms=key.revoked_at_ms or revocation.at_ms)


def _put(
    values: dict[str, Value], subject: str, row: Row[Any], read: Callable[[Row[Any]], Value]
) -> None:
    values.pop(subject, None)
    if row.removed_at is not None:
        return
    try:
        values[subject] = read(row)
    except (msgspec.ValidationError, ValueError):
        logger.exception("directory: %s cannot be read and is left out", subject)
