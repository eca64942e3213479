"""How long a simulated sequence becomes."""

import pytest

from backend.sglang_http.engine import GenerationRequest, Prompt, Sampling
from backend.sglang_http.ledger import Ledger
from backend.sglang_http.live import LiveSequences
from backend.simulated.sequence import SimulatedSequence, simulated_sequence
from backend.simulated.settings import SimulatedSettings


def made(prompt: tuple[int, ...], sampling: Sampling, **settings: int) -> SimulatedSequence:
    """A sequence of this prompt."""
    request = GenerationRequest("r", Prompt("", prompt), sampling, stream=True)
    live = LiveSequences(Ledger()).add(request)
    return simulated_sequence(live, SimulatedSettings(**settings))  # type: ignore[arg-type] # only numbers are set here


@pytest.mark.parametrize("prompt", [(1,), (1, 2), (3, 4, 5), (9,) * 100])
def test_natural_end(prompt: tuple[int, ...]) -> None:
    """Text ends between three and five quarters of the natural length."""
    sequence = made(prompt, Sampling(5000), natural_output_tokens=100)
    assert 75 <= sequence.natural_end < 125


def test_clamped_to_the_pool() -> None:
    """A maximum that the KV pool can never hold is clamped, silently as in SGLang."""
    sequence = made((1,) * 60, Sampling(500), kv_tokens=100)
    assert sequence.max_tokens == 40
    assert sequence.reserved_tokens == 100


def test_seed() -> None:
    """A seed counts unless the request is greedy."""
    greedy = [made((1,), Sampling(5, temperature=0.0, seed=seed)).text_key for seed in (1, 2)]
    drawn = [made((1,), Sampling(5, temperature=1.0, seed=seed)).text_key for seed in (1, 2)]
    assert greedy[0] == greedy[1]
    assert drawn[0] != drawn[1]
