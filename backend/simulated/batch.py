"""The sequences that decode, and the sums over them that each step needs."""

from backend.simulated.kv_pool import KvPool
from backend.simulated.place import Place
from backend.simulated.request import EndReason, SimulatedRequest


class DecodeBatch:
    """In the order in which they joined."""

    def __init__(self, pool: KvPool) -> None:
        self._pool = pool
        self.places: list[Place] = []
        self._requests: list[SimulatedRequest] = []
        self.context_tokens = 0
        """What the next step reads: for each its text, the token it is about to compute on
        included."""

    def __len__(self) -> int:
        return len(self.places)

    def join(self, place: Place) -> None:
        """Its text is computed and its first token is there."""
        place.decoding = True
        self.places.append(place)
        self._requests.append(place.request)
        self.context_tokens += place.text_tokens

    def leave(self, gone: list[Place]) -> None:
        """These decode no more; what they hold is not touched."""
        out = set(map(id, gone))
        self.places = [place for place in self.places if id(place) not in out]
        self._requests = [place.request for place in self.places]
        self.context_tokens -= sum(place.text_tokens for place in gone)

    def next_step_tokens(self, places: list[Place] | None = None) -> int:
        """KV slots that these, or all, need for one step."""
        page = self._pool.page_size
        of = self.places if places is None else places
        if page == 1:
            return len(of)
        return page * sum(1 for place in of if place.kv_tokens % page == 0)

    def advance(self) -> tuple[list[SimulatedRequest], list[tuple[Place, EndReason]]]:
        """Each has one more token. Returns them, and the places that end with it; these are to
        leave."""
        ended: list[tuple[Place, EndReason]] = []
        for place in self.places:
            request = place.request
            generated = request.generated = request.generated + 1
            if generated >= place.ends_at:
                ended.append((place, end_reason(place)))
        self.context_tokens += len(self.places)
        return list(self._requests), ended


def end_reason(place: Place) -> EndReason:
    """Why a sequence ends that has reached its end or was aborted."""
    if place.aborting:
        return EndReason.ABORT
    request = place.request
    if request.ignore_eos or request.ends_after >= request.max_new_tokens:
        return EndReason.LENGTH
    return EndReason.STOP
