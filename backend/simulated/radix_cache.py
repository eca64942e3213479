"""Which prefixes the KV cache holds: a radix tree over token ids, apart for each salt.

A node is locked while a running sequence stands on or below it. What no one stands on may be
evicted, leaves first, a whole node at a time, in the order of a policy: least recently used first
unless another is asked for. The policies are SGLang's (`mem_cache/evict_policy.py`).
"""

import heapq
from itertools import count

from backend.simulated.flags import EvictionPolicy
from backend.simulated.request import TOKEN_BYTES
from backend.simulated.token_ids import shared_tokens

PROTECTED_HITS = 2
"""Under `slru` text that more than one sequence had goes after all that only one had."""


class Node:
    """A piece of cached text and what follows it."""

    __slots__ = (
        *("children", "edge", "hits", "key", "locks", "parent", "queued", "tokens"),
        "used_at",
    )

    def __init__(self, parent: "Node | None", edge: bytes, key: bytes, used_at: int) -> None:
        self.parent = parent
        self.edge = edge
        self.key = key
        self.tokens = len(key) // TOKEN_BYTES
        self.children: dict[bytes, Node] = {}
        self.locks = 0
        self.used_at = used_at
        self.hits = 0
        """How many sequences have put this text in, or found it there when they did."""
        self.queued = False
        """Whether it stands in the eviction heap."""


class RadixCache:
    """Counts the tokens it holds; where they lie is not its business."""

    def __init__(self, page_size: int, policy: EvictionPolicy = "lru") -> None:
        self._page_size = page_size
        self._policy = policy
        self._page_bytes = page_size * TOKEN_BYTES
        self._clear()

    def _clear(self) -> None:
        self._root = Node(None, b"", b"", 0)
        self._clock = 0
        self._heap: list[tuple[tuple[int, int], int, Node]] = []
        self._ties = count()
        self.evictable_tokens = 0
        self.locked_tokens = 0

    @property
    def tokens(self) -> int:
        """All it holds."""
        return self.evictable_tokens + self.locked_tokens

    def clear(self) -> None:
        """Forget everything. Raises RuntimeError while anything is locked."""
        if self.locked_tokens:
            raise RuntimeError("the prefix cache is in use")
        self._clear()

    def match(self, ids: bytes, tokens: int, salt: bytes) -> tuple[int, Node]:
        """How many of the first `tokens` are held, in whole pages, and the node they end at. They
        count as used now."""
        end = tokens // self._page_size * self._page_bytes
        at, node = self._walk(ids, end, salt)
        return at // TOKEN_BYTES, node

    def insert(
        self, ids: bytes, tokens: int, salt: bytes, *, counted_tokens: int = 0
    ) -> tuple[int, Node]:
        """Hold the whole pages of the first `tokens`. Returns how many of them were held before,
        and the node they end at. What lies behind `counted_tokens`, which the same sequence put in
        earlier, counts as hit."""
        end = tokens // self._page_size * self._page_bytes
        at, node = self._walk(ids, end, salt)
        held = at // TOKEN_BYTES
        if at < end:
            edge = self._edge(node, ids, at, salt)
            leaf = Node(node, edge, ids[at:end], self._clock)
            node.children[edge] = leaf
            self.evictable_tokens += leaf.tokens
            self._offer(leaf)
            node = leaf
        self._count_hits(node, end // TOKEN_BYTES, counted_tokens)
        return held, node

    def _count_hits(self, node: Node, end_tokens: int, counted_tokens: int) -> None:
        at: Node | None = node
        while at is not None and end_tokens > counted_tokens:
            at.hits += 1
            end_tokens -= at.tokens
            at = at.parent

    def lock(self, node: Node) -> None:
        """Keep it and what leads to it until `unlock`."""
        at: Node | None = node
        while at is not None and at is not self._root:
            if at.locks == 0:
                self.evictable_tokens -= at.tokens
                self.locked_tokens += at.tokens
            at.locks += 1
            at = at.parent

    def unlock(self, node: Node) -> None:
        """Undo one `lock`."""
        at: Node | None = node
        while at is not None and at is not self._root:
            at.locks -= 1
            if at.locks == 0:
                self.evictable_tokens += at.tokens
                self.locked_tokens -= at.tokens
                self._offer(at)
            at = at.parent

    def evict(self, tokens: int) -> int:
        """Drop leaves until at least so many tokens are gone or all that is left is locked;
        returns how many went."""
        gone = 0
        while gone < tokens and self._heap:
            rank, _, node = heapq.heappop(self._heap)
            node.queued = False
            if node.locks or node.children or node.parent is None:
                continue
            if self._rank(node) != rank:
                self._offer(node)
                continue
            parent = node.parent
            del parent.children[node.edge]
            node.parent = None
            gone += node.tokens
            self.evictable_tokens -= node.tokens
            self._offer(parent)
        return gone

    def _edge(self, node: Node, ids: bytes, at: int, salt: bytes) -> bytes:
        page = ids[at : at + self._page_bytes]
        return salt + page if node is self._root else page

    def _walk(self, ids: bytes, end: int, salt: bytes) -> tuple[int, Node]:
        """The byte of `ids` up to which text is held and the node that ends there, split off
        where the text ends within one."""
        self._clock += 1
        node, at = self._root, 0
        while at < end:
            child = node.children.get(self._edge(node, ids, at, salt))
            if child is None:
                break
            child.used_at = self._clock
            shared = shared_tokens(child.key, ids, at, end)
            if shared < child.tokens:
                shared -= shared % self._page_size
                return at + shared * TOKEN_BYTES, self._split(child, shared)
            at += len(child.key)
            node = child
        return at, node

    def _split(self, child: Node, tokens: int) -> Node:
        """Cut a node in two; returns the first half."""
        parent = child.parent
        if parent is None:
            raise RuntimeError("a node outside the tree was split")
        cut = tokens * TOKEN_BYTES
        upper = Node(parent, child.edge, child.key[:cut], child.used_at)
        upper.hits = child.hits
        upper.locks = child.locks
        parent.children[child.edge] = upper
        child.parent = upper
        child.key = child.key[cut:]
        child.tokens -= tokens
        child.edge = child.key[: self._page_bytes]
        upper.children[child.edge] = child
        return upper

    def _offer(self, node: Node) -> None:
        """Put an evictable leaf into the heap, once: its place is corrected when it comes up."""
        if node.queued or node.locks or node.children or node.parent is None:
            return
        node.queued = True
        heapq.heappush(self._heap, (self._rank(node), next(self._ties), node))

    def _rank(self, node: Node) -> tuple[int, int]:
        """The lowest goes first."""
        match self._policy:
            case "lru":
                return (0, node.used_at)
            case "lfu":
                return (node.hits, node.used_at)
            case "slru":
                return (int(node.hits >= PROTECTED_HITS), node.used_at)
