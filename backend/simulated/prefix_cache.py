"""Which prompt prefixes the simulated KV cache still holds, apart for each cache salt."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence


class PrefixCache:
    """Least recently used prefixes, token by token, at most `capacity_tokens` of them.

    A prefix is known by a chained hash that begins with the salt, so equal prompts under different
    salts have nothing in common.
    """

    def __init__(self, capacity_tokens: int) -> None:
        self._capacity = capacity_tokens
        self._held: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        """Tokens held."""
        return len(self._held)

    def match(self, salt: bytes, tokens: Sequence[int]) -> int:
        """How many leading tokens are held; always fewer than all, since the last one has to be
        computed to have something to continue from."""
        matched = 0
        for link in _chain(salt, tokens[:-1]):
            if link not in self._held:
                break
            matched += 1
        return matched

    def insert(self, salt: bytes, tokens: Sequence[int]) -> None:
        """Hold these tokens; the longest unused tails go first where room is needed."""
        links = list(_chain(salt, tokens))
        for link in reversed(links):
            self._held[link] = None
            self._held.move_to_end(link)
        self.shrink(self._capacity)

    def shrink(self, capacity_tokens: int) -> None:
        """Evict until at most so many tokens are held."""
        while len(self._held) > max(0, capacity_tokens):
            self._held.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()


def _chain(salt: bytes, tokens: Sequence[int]) -> Iterator[int]:
    link = hash(salt)
    for token in tokens:
        link = hash((link, token))
        yield link
