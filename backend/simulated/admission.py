"""Which waiting sequences the next prefill step takes, and how much of each."""

from dataclasses import dataclass
from enum import Enum, auto

from backend.simulated.flags import SchedulerFlags
from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place
from backend.simulated.token_ids import count

CLIP_NEW_TOKENS = 4096
"""More than that is not reserved for a sequence, however long it may become."""


class Verdict(Enum):
    """What became of a candidate, and whether the next one need be tried."""

    CONTINUE = auto()
    NO_TOKEN = auto()
    """Memory is the limit."""
    OTHER = auto()
    """This step's compute budget is spent."""


@dataclass(slots=True)
class Piece:
    """What one sequence has computed in one prefill step: tokens `start` to `end` of its text."""

    place: Place
    start: int
    end: int

    @property
    def completes(self) -> bool:
        """Whether its whole text is computed then."""
        return self.end == count(self.place.ids)


def still_to_come(place: Place, ratio: float) -> float:
    """How many tokens a running sequence is expected to need yet."""
    request = place.request
    left = min(request.max_new_tokens - request.generated, CLIP_NEW_TOKENS)
    return left * (1.0 if request.ignore_eos else ratio)


class PrefillPass:
    """The budgets of one prefill step, and what has been taken within them."""

    def __init__(
        self,
        pool: KvPool,
        flags: SchedulerFlags,
        running: list[Place],
        new_token_ratio: float,
        decoding_beside: int,
    ) -> None:
        self._pool = pool
        self._page = pool.page_size
        self._ratio = new_token_ratio
        self._input_left = flags.max_prefill_tokens - decoding_beside
        chunk = flags.chunked_prefill_size
        self._chunk_left = chunk - decoding_beside if chunk > 0 else None
        self._now_reserved = float(decoding_beside)
        self._reserved = decoding_beside + sum(still_to_come(p, self._ratio) for p in running)
        self.pieces: list[Piece] = []
        self.computed_first = 0
        """Tokens to compute, and below found in the cache, of those who did not run before."""
        self.found_first = 0

    @property
    def memory_left(self) -> float:
        """Tokens that may yet be promised."""
        return self._pool.available_tokens - self._reserved

    @property
    def verdict(self) -> Verdict:
        """Whether another candidate may be tried."""
        left = self._pool.available_tokens
        if left <= self._reserved or left <= self._now_reserved:
            return Verdict.NO_TOKEN
        if self._input_left <= 0 or (self._chunk_left is not None and self._chunk_left <= 0):
            return Verdict.OTHER
        return Verdict.CONTINUE

    def proceed(self, place: Place) -> bool:
        """The next chunk of the sequence whose prompt is half computed. False: there is no room
        for any of it now."""
        start, text = place.computed_tokens, count(place.ids)
        chunk = text if self._chunk_left is None else self._chunk_left
        within = min(chunk, int(self.memory_left))
        # It has to go on even if others were promised the memory: only its end frees its slots.
        extend = min(text - start, within if within > 0 else chunk)
        room = self._pool.available_tokens + self._pool.paged(start) - start
        extend = min(extend, room)
        if extend <= 0:
            return False
        self._commit(Piece(place, start, start + extend), found=0)
        return True

    def admit(self, place: Place, *, alone: bool, chunking: bool) -> Verdict:
        """Try a waiting sequence: the longest cached prefix is locked and the rest, or as much of
        it as this step may compute, becomes a piece. `alone`: nothing else holds or waits for
        memory, so that its estimate may not keep it out. `chunking`: another one's prompt is half
        computed, so that this one's may not be cut."""
        text = count(place.ids)
        found, node = self._pool.match(place.ids, text - 1, place.request.salt)
        pool = self._pool
        pool.lock(place, found, node)
        end = self._end(place, found, text, alone=alone, chunking=chunking)
        if isinstance(end, Verdict):
            pool.release(place, keep=False)
            return end
        self._commit(Piece(place, found, end), found)
        return self.verdict

    def _end(
        self, place: Place, found: int, text: int, *, alone: bool, chunking: bool
    ) -> int | Verdict:
        extend = text - found
        request = place.request
        to_come = min(max(request.max_new_tokens - request.generated, 0), CLIP_NEW_TOKENS)
        fits = extend + to_come + self._page < self.memory_left
        if not fits and not (alone and self._pool.paged(text) <= self._pool.size_tokens):
            return Verdict.NO_TOKEN
        paged = self._pool.paged(extend)
        if self._chunk_left is None:
            return text if not self.pieces or paged < self._input_left else Verdict.OTHER
        if paged <= self._chunk_left:
            return text
        end = (found + self._chunk_left) // self._page * self._page
        return Verdict.OTHER if chunking or end <= found else end

    def _commit(self, piece: Piece, found: int) -> None:
        extend = piece.end - piece.start
        paged = self._pool.paged(extend)
        new = min(piece.place.request.max_new_tokens, CLIP_NEW_TOKENS) if piece.completes else 0
        self._now_reserved += paged + self._page
        self._reserved += paged + self._page + new
        self._input_left -= paged
        if self._chunk_left is not None:
            self._chunk_left -= paged
        self.pieces.append(piece)
        if not piece.place.lost_place:
            self.computed_first += extend
            self.found_first += found

    def memory_freed(self, victim: Place) -> None:
        """A running sequence was preempted: what it was promised can be promised again."""
        self._reserved -= still_to_come(victim, self._ratio)
