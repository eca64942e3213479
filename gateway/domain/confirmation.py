"""Which gateways go by a change already, and which have not said so."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Unknown(StrEnum):
    """Why nobody's confirmation is known."""

    NO_STORE = "no_store"
    """Whoever made the change was told of no Redis, where gateways say it."""
    STORE_UNAVAILABLE = "store_unavailable"
    """Redis did not answer."""
    GATEWAYS_UNHEARD = "gateways_unheard"
    """Redis has no list of gateways, or one that is too young to have all of them."""
    CHANGE_UNREAD = "change_unread"
    """Postgres did not say which number the change has."""


class Applied(NamedTuple):
    """How far a gateway follows the directory."""

    seen: int
    """It goes by every change up to this number."""
    heard: frozenset[int] = frozenset()
    """And by these later ones: revocations that it has from Redis alone."""

    def has(self, changed: int) -> bool:
        """Whether it goes by that change."""
        return self.seen >= changed or changed in self.heard


NOTHING_SAID = Applied(-1)


@dataclass(frozen=True)
class Confirmation:
    """Gateways by their ids, in order. `unconfirmed` is None, and `unknown` says why, where it is
    not known who there is: then nobody is claimed to have confirmed."""

    confirmed: tuple[str, ...]
    unconfirmed: tuple[str, ...] | None
    unknown: Unknown | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every gateway goes by the change."""
        return self.unconfirmed == ()


def not_known(why: Unknown) -> Confirmation:
    """Nobody's confirmation is known."""
    return Confirmation((), None, why)


def confirmation(
    present: tuple[str, ...], applied: Mapping[str, Applied], changed: int
) -> Confirmation:
    """Of a change, by the gateways that are there; one that has said nothing has not confirmed."""
    confirmed = tuple(name for name in present if applied.get(name, NOTHING_SAID).has(changed))
    return Confirmation(confirmed, tuple(name for name in present if name not in confirmed))
