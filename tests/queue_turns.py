"""Whose turn it is, written down a second time: each tenant has its own number, which is moved at
once where something pulls it. There is no level that many share, and nobody is forgotten: but where
a place was taken back, whose tenant may be owed more than was thought of."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from gateway.domain.queue.fairness import UNITS, Counters


@dataclass
class Tenant:
    """In one band."""

    served: int = 0
    stands: int = 0
    """While it waits."""
    came: int | None = None
    """Its number among newcomers, while it is one."""
    waits: bool = False
    active: bool = False


class Turns:
    """Hears of everything that `Counters` is told."""

    def __init__(self, counters: Counters) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.last = 0
        self._counters = counters
        self._was_taken_back = False
        self._numbers = count()
        for name in ("activate", "wait", "rest", "charge", "correct", "deactivate"):
            self._hear(counters, name)

    def of(self, tenant: str) -> tuple[int, int, str]:
        """The lower the earlier."""
        one = self.tenants[tenant]
        return one.stands, 1 << 60 if one.came is None else one.came, tenant

    def _hear(self, counters: Counters, name: str) -> None:
        told, own = getattr(counters, name), getattr(self, f"_{name}")

        def both(*args: Any, **named: Any) -> None:
            own(*args, **named)
            told(*args, **named)

        setattr(counters, name, both)

    def _lowest(self) -> int:
        return min((one.stands for one in self.tenants.values() if one.waits), default=self.last)

    def _remembered(self, tenant: str) -> None:
        one = self.tenants[tenant]
        if self._was_taken_back and not one.active and tenant not in self._counters.idle:
            one.served = 0

    def _pull(self, to: int) -> None:
        for one in self.tenants.values():
            if one.came is not None:
                one.stands = min(one.stands, to)

    def _activate(self, tenant: str) -> None:
        one = self.tenants.setdefault(tenant, Tenant())
        self._remembered(tenant)
        if not one.active:
            one.served, one.active = max(one.served, self._lowest()), True

    def _wait(self, tenant: str, *, came_back: bool = False) -> None:
        one = self.tenants.setdefault(tenant, Tenant())
        if one.waits:
            return
        self._was_taken_back |= came_back
        self._remembered(tenant)
        lowest = self._lowest()
        one.stands = one.served
        if one.served < lowest and not (came_back and one.active):
            one.stands, one.came = lowest, next(self._numbers)
            self._pull(lowest)
        one.waits = one.active = True

    def _rest(self, tenant: str) -> None:
        one = self.tenants[tenant]
        self.last, one.waits, one.came = one.stands, False, None

    def _charge(self, tenant: str, cost: int, weight: int) -> None:
        one = self.tenants[tenant]
        if one.came is not None:
            one.served, one.came = max(one.served, one.stands), None
        one.served += cost * UNITS // weight
        one.stands = one.served

    def _correct(
        self, tenant: str, expected: int, actual: int, weight: int, *, came_back: bool = False
    ) -> None:
        one = self.tenants[tenant]
        one.served += actual * UNITS // weight - expected * UNITS // weight
        if one.came is None:
            one.stands = one.served
            if one.waits and not came_back:
                self._pull(one.stands)

    def _deactivate(self, tenant: str) -> None:
        self.tenants[tenant].active = False
