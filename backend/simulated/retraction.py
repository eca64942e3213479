"""Who gives up memory or a place: retraction, preemption, and the estimate that both correct."""

from collections.abc import Callable, Iterable

from backend.simulated.admission import CLIP_NEW_TOKENS, PrefillPass, still_to_come
from backend.simulated.flags import SchedulerFlags
from backend.simulated.place import Place

RETRACT_STEPS = 20
"""Decode steps for which room is made when memory has run out."""


class NewTokenRatio:
    """What share of its maximum a running sequence is expected to use."""

    def __init__(self, conservativeness: float) -> None:
        self._initial = min(0.7 * conservativeness, 1.0)
        self._least = self._initial * 0.14
        self._decay = (self._initial - self._least) / 600
        self.current = self._initial

    def decay(self) -> None:
        """A decode step went well."""
        self.current = max(self.current - self._decay, self._least)

    def after_retraction(self, kept: Iterable[Place]) -> None:
        """Set it by those who are left."""
        places = list(kept)
        generated = sum(place.request.generated for place in places)
        most = sum(place.request.max_new_tokens for place in places)
        self.current = min(1.0, (generated + RETRACT_STEPS * len(places)) / (most + 1))

    def reset(self) -> None:
        """The replica is idle."""
        self.current = self._initial


def retract(
    running: list[Place],
    flags: SchedulerFlags,
    fits: Callable[[list[Place]], bool],
    release: Callable[[Place, int], None],
) -> tuple[list[Place], Place | None]:
    """Take sequences out of the batch, the least worth keeping first, until the next decode step
    `fits`; the last stays, and is out of memory if it does not fit. `release` is told how many
    stay. Returns those who may come back, and that last one."""
    by_priority = flags.retraction_policy == "priority"

    def worth(place: Place) -> tuple[int, int, int]:
        priority = -place.priority if by_priority else 0
        return (priority, place.request.generated, -place.prompt_tokens)

    kept = sorted(running, key=worth, reverse=True)
    victims: list[Place] = []
    while len(kept) > 1 and (not victims or not fits(kept)):
        victim = kept.pop()
        release(victim, len(kept))
        victims.append(victim)
    out_of_memory = None
    if len(kept) <= 1 and not fits(kept):
        out_of_memory = kept.pop()
        release(out_of_memory, 0)
    return victims, out_of_memory


def preemptible(
    arrival: Place, running: list[Place], admission: PrefillPass, ratio: float, threshold: int
) -> list[Place]:
    """The running sequences to give up for one that waits: the worst first, each worse by more
    than `threshold`, as many as bring the memory it needs; none if that is not enough."""
    request = arrival.request
    short = (
        arrival.text_tokens
        - arrival.matched_tokens
        + min(request.max_new_tokens, CLIP_NEW_TOKENS)
        - admission.memory_left
    )
    victims: list[Place] = []
    for place in sorted(running, key=lambda place: (-place.priority, -place.entered)):
        if place.priority - arrival.priority <= threshold:
            break
        victims.append(place)
        short -= still_to_come(place, ratio)
        if short <= 0:
            return victims
    return []
