"""What an unbounded prefix cache would find, reckoned by hand."""

import pytest

from backend.loadtest.ideal_hits import ideal_hit_rate
from backend.loadtest.plan import PlannedRequest, Segment


def prompts(*prompts: list[tuple[str, int]]) -> list[PlannedRequest]:
    return [
        PlannedRequest(
            number, float(number), "t00", "interactive", tuple(Segment(*s) for s in segments), 1
        )
        for number, segments in enumerate(prompts)
    ]


def test_the_first_of_a_prefix_finds_nothing_and_the_next_all_of_it() -> None:
    requests = prompts([("p", 60), ("a", 40)], [("p", 60), ("b", 40)], [("p", 60), ("c", 40)])
    assert ideal_hit_rate(requests) == pytest.approx(120 / 300)


def test_one_token_of_a_prompt_seen_whole_is_still_computed() -> None:
    assert ideal_hit_rate(prompts([("p", 10)], [("p", 10)])) == pytest.approx(9 / 20)


def test_nothing_counts_after_the_first_difference() -> None:
    requests = prompts([("p", 5), ("a", 5), ("q", 90)], [("p", 5), ("b", 5), ("q", 90)])
    assert ideal_hit_rate(requests) == pytest.approx(5 / 200)


def test_the_same_text_after_another_beginning_is_not_a_prefix() -> None:
    assert ideal_hit_rate(prompts([("p", 50), ("q", 50)], [("q", 50), ("p", 50)])) == 0


def test_a_shorter_piece_of_a_key_is_the_beginning_of_a_longer_one() -> None:
    # The second finds 30 of its 40; the third all of its 20, and then its own piece is new.
    requests = prompts([("p", 30)], [("p", 40)], [("p", 20), ("a", 10)])
    assert ideal_hit_rate(requests) == pytest.approx((30 + 20) / (30 + 40 + 30))


def test_a_longer_prompt_holds_the_shorter_ones_blocks() -> None:
    blocks = [("b0", 512), ("b1", 512), ("b2", 100)]
    assert ideal_hit_rate(prompts(blocks, blocks[:2])) == pytest.approx(1023 / 2148)


def test_no_requests_find_nothing() -> None:
    assert ideal_hit_rate([]) == 0
