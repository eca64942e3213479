"""The KV pool: every token slot is free, evictable, locked or private to one running sequence."""

from backend.simulated.flags import EvictionPolicy
from backend.simulated.place import Place
from backend.simulated.radix_cache import Node, RadixCache
from backend.simulated.request import TOKEN_BYTES


class KvPool:
    """Hands out slots in whole pages, evicting cached text for them, and takes them back."""

    def __init__(
        self,
        size_tokens: int,
        page_size: int,
        *,
        cached: bool,
        eviction_policy: EvictionPolicy = "lru",
    ) -> None:
        self.size_tokens = size_tokens // page_size * page_size
        self.page_size = page_size
        self.cache = RadixCache(page_size, eviction_policy)
        self._cached = cached
        self.private_tokens = 0
        self.evicted_tokens = 0

    @property
    def free_tokens(self) -> int:
        """Slots that hold nothing."""
        return self.size_tokens - self.cache.tokens - self.private_tokens

    @property
    def evictable_tokens(self) -> int:
        """Slots that hold text nobody runs on."""
        return self.cache.evictable_tokens

    @property
    def available_tokens(self) -> int:
        """What could be handed out."""
        return self.size_tokens - self.cache.locked_tokens - self.private_tokens

    @property
    def used_tokens(self) -> int:
        """What running sequences hold, shared text counted once: neither free nor evictable."""
        return self.cache.locked_tokens + self.private_tokens

    def paged(self, tokens: int) -> int:
        """So many tokens in whole pages."""
        return -(-tokens // self.page_size) * self.page_size

    def make_free(self, tokens: int) -> bool:
        """Evict until so many slots are free; False if not that many can be."""
        short = tokens - self.free_tokens
        if short > 0:
            self.evicted_tokens += self.cache.evict(short)
        return self.free_tokens >= tokens

    def take(self, tokens: int) -> None:
        """Give out free slots, evicting for them. Raises RuntimeError if there are too few: the
        scheduler has to ask before it takes."""
        if not self.make_free(tokens):
            raise RuntimeError("more KV slots were taken than the pool has")
        self.private_tokens += tokens

    def match(self, ids: bytes, tokens: int, salt: bytes) -> tuple[int, Node | None]:
        """Whole pages held of the first `tokens`, and the node to lock for them."""
        if not self._cached:
            return 0, None
        return self.cache.match(ids, tokens, salt)

    def lock(self, place: Place, tokens: int, node: Node | None) -> None:
        """A sequence stands on `tokens` of cached text from now on."""
        if node is not None:
            self.cache.lock(node)
        place.node = node
        place.protected_tokens = place.computed_tokens = tokens

    def publish(self, place: Place, tokens: int) -> None:
        """Put the whole pages of what a sequence has computed into the cache, where it keeps them
        locked. Slots that hold what was cached meanwhile are freed."""
        if not self._cached:
            return
        request = place.request
        ids = place.text(tokens)
        _, node = self.cache.insert(ids, tokens, request.salt, counted_tokens=place.inserted_tokens)
        prompt_tokens = len(request.prompt) // TOKEN_BYTES
        if prompt_tokens < tokens:
            # Split where the prompt ends, so that the output can go without it.
            self.cache.insert(ids, prompt_tokens, request.salt, counted_tokens=prompt_tokens)
            _, node = self.cache.match(ids, tokens, request.salt)
        self.cache.lock(node)
        if place.node is not None:
            self.cache.unlock(place.node)
        place.node = node
        paged = tokens // self.page_size * self.page_size
        self.private_tokens -= paged - place.protected_tokens
        place.protected_tokens = place.inserted_tokens = paged

    def release(self, place: Place, *, keep: bool) -> None:
        """Take back all that a sequence holds; with `keep` its text stays, evictable."""
        held = place.kv_tokens
        if keep and held:
            self.publish(place, held)
        self.private_tokens -= self.paged(held) - place.protected_tokens
        if place.node is not None:
            self.cache.unlock(place.node)
        place.leave()
