"""How long a simulated sequence becomes."""

import pytest

from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.simulated import vocabulary
from backend.simulated.sequence import SimulatedSequence, simulated_sequence
from backend.simulated.settings import SimulatedSettings


def made(prompt: tuple[int, ...], sampling: Sampling, **settings: int) -> SimulatedSequence:
    """A sequence of this prompt."""
    request = GenerationRequest("r", Prompt("", prompt), sampling, stream=True)
    live = LiveSequences(Ledger()).add(request)
    return simulated_sequence(live, SimulatedSettings(**settings))  # type: ignore[arg-type] # only numbers are set here


@pytest.mark.parametrize("prompt", [(1,), (1, 2), (3, 4, 5), (9,) * 100])
def test_natural_end(prompt: tuple[int, ...]) -> None:
    """Text ends between three and five quarters of the natural length, its end one token more."""
    sequence = made(prompt, Sampling(5000), natural_output_tokens=100)
    assert 75 <= sequence.request.ends_after - 1 < 125


def test_least_length() -> None:
    """Text does not end before `min_tokens`; with the maximum as high it has that length."""
    request = made((1,), Sampling(700, min_tokens=700), natural_output_tokens=100).request
    assert request.ends_after > request.max_new_tokens == 700


def test_the_end_of_text_is_a_token() -> None:
    """It has no text and an id of its own."""
    sequence = made((1,), Sampling(5000), natural_output_tokens=4)
    length = sequence.request.ends_after
    assert sequence.output_ids(length)[-1] == vocabulary.END_OF_TEXT_ID
    assert len(sequence.output_ids(length)) == length
    sequence.live.generation.completion_tokens = length - 2
    assert sequence.next_text() is not None
    sequence.live.generation.completion_tokens = length - 1
    assert sequence.next_text() is None


def test_seed() -> None:
    """A seed counts unless the request is greedy."""
    greedy = [made((1,), Sampling(5, temperature=0.0, seed=seed)).text_key for seed in (1, 2)]
    drawn = [made((1,), Sampling(5, temperature=1.0, seed=seed)).text_key for seed in (1, 2)]
    assert greedy[0] == greedy[1]
    assert drawn[0] != drawn[1]
