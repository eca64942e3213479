"""Prompts made of segments: exact counts, shared where segments are, different elsewhere."""

import time

import pytest

from backend.loadtest.plan import PlannedRequest, Segment
from backend.loadtest.prompts import PromptText
from backend.simulated.vocabulary import encode


def request(*segments: tuple[str, int]) -> PlannedRequest:
    made = tuple(Segment(key, tokens) for key, tokens in segments)
    return PlannedRequest(0, 0.0, "t00", "interactive", made, 1)


PROMPTS = PromptText()


@pytest.mark.parametrize("tokens", [1, 2, 511, 512, 40_000, 300_000])
def test_text_has_exactly_its_tokens_for_a_simulated_worker(tokens: int) -> None:
    assert len(encode(PROMPTS.text(request(("k", tokens)))).tokens) == tokens


def test_token_ids_are_four_bytes_each() -> None:
    for tokens in (1, 2, 300_000, 1_000_000):
        assert len(PROMPTS.token_ids(request(("k", tokens)))) == 4 * tokens


def test_counts_add_up_where_segments_meet() -> None:
    joined = request(("a", 3), ("b", 1), ("c", 700))
    parts = [PROMPTS.text(request((key, tokens))) for key, tokens in (("a", 3), ("b", 1))]
    assert PROMPTS.text(joined).startswith("".join(parts))
    assert len(encode(PROMPTS.text(joined)).tokens) == 704


def test_a_shorter_segment_begins_a_longer_one_of_its_key() -> None:
    short, long = request(("k", 5)), request(("k", 300_000))
    assert PROMPTS.token_ids(long).startswith(PROMPTS.token_ids(short))
    assert PROMPTS.text(long).startswith(PROMPTS.text(short) + " ")


def test_every_key_begins_with_a_token_of_its_own() -> None:
    alone = [request((f"request-{n}", 2)) for n in range(2_000)]
    assert len({PROMPTS.token_ids(each)[:4] for each in alone}) == 2_000
    assert len({encode(PROMPTS.text(each)).tokens[0] for each in alone}) == 2_000


def test_another_salt_shares_nothing_with_an_earlier_run() -> None:
    prompt, again = request(("prefix-0", 50)), PromptText("run 2")
    assert again.text(prompt).split()[0] != PROMPTS.text(prompt).split()[0]
    assert again.token_ids(prompt)[:4] != PROMPTS.token_ids(prompt)[:4]
    assert again.text(prompt) == PromptText("run 2").text(prompt)


def test_text_is_the_same_in_every_process() -> None:
    assert PROMPTS.text(request(("prefix-0", 3))) == " 93a4e8b49e10 unity theme"
    assert PROMPTS.token_ids(request(("prefix-0", 2))).hex() == "93a4e8b4f358c8f0"


def test_messages_are_one_users() -> None:
    prompt = request(("a", 3), ("b", 2))
    assert PROMPTS.messages(prompt) == [{"role": "user", "content": PROMPTS.text(prompt)}]


def test_five_million_tokens_take_a_second_at_most() -> None:
    prompt = request(*((f"block-{n}", 512) for n in range(370)))
    PROMPTS.text(prompt), PROMPTS.token_ids(prompt)
    started = time.process_time()
    for _ in range(13):
        PROMPTS.text(prompt)
        PROMPTS.token_ids(prompt)
    # 2.5 million tokens each way; three times what is promised.
    assert time.process_time() - started < 3
