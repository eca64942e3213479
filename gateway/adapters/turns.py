"""Whose turn it is to do what one gateway is enough for: a claim in Redis that lapses by itself."""

from gateway.adapters.scripts import Store, called

TURN_MS = 5_000
_CLAIM = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class RedisTurns:
    """Implements `serving.month_ports.Turns`. Advice, no lock: whoever was slow may find that
    another has begun."""

    def __init__(self, store: Store) -> None:
        self._claim = store.register_script(_CLAIM)
        self._release = store.register_script(_RELEASE)

    async def claim(self, tenant_id: str, what: str, holder: str) -> bool:
        """Take or keep the turn for TURN_MS; False where another has it. Raises
        LedgerUnavailable."""
        return bool(await called(self._claim, [_key(tenant_id, what)], [holder, TURN_MS]))

    async def release(self, tenant_id: str, what: str, holder: str) -> None:
        """Give the turn back, where it is still the holder's. Raises LedgerUnavailable."""
        await called(self._release, [_key(tenant_id, what)], [holder])


def _key(tenant_id: str, what: str) -> str:
    return f"weir:{{{tenant_id}}}:turn:{what}"
