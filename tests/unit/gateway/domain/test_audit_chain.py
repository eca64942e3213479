"""The chain's rule by itself: a hash that is written down here, and what does not fit."""

from dataclasses import replace

import pytest

from gateway.domain.audit_chain import NO_HASH, ChainedEntry, entry_hash, first_misfit

FIELDS = (
    "1", "2026-11-30T12:00:00.000000Z", "cli:ü", "key.revoke", "key", "key_1", "acme", "", "null",
    '{"tpm": 1}',
)  # fmt: skip


def a_chain(count: int = 4) -> list[ChainedEntry]:
    """Entries that fit."""
    chain: list[ChainedEntry] = []
    previous = NO_HASH
    for number in range(1, count + 1):
        fields = (str(number), *FIELDS[1:])
        previous = entry_hash(previous, 1, fields)
        chain.append(ChainedEntry(number, 1, fields, previous))
    return chain


def test_the_hash_is_the_one_that_is_documented() -> None:
    """The same as `printf | sha256sum` gives of the text that docs/audit.md tells."""
    expected = "05b6c6cb6253f0903dea2fff99e96c7f145ab9dbccbabfde180a7d1ea9d42b43"
    assert entry_hash(NO_HASH, 1, FIELDS) == expected


def test_what_fits_has_no_misfit() -> None:
    """Also none, and a part after its own head."""
    chain = a_chain()
    assert first_misfit(NO_HASH, chain) is None
    assert first_misfit(chain[1].hash, chain[2:]) is None
    assert first_misfit(NO_HASH, []) is None


@pytest.mark.parametrize("field", range(len(FIELDS)))
def test_each_field_counts(field: int) -> None:
    """One character more in any of them."""
    chain = a_chain()
    fields = list(chain[2].fields)
    fields[field] += "x"
    chain[2] = replace(chain[2], fields=tuple(fields))
    assert first_misfit(NO_HASH, chain) is chain[2]


def test_a_text_cannot_move_into_the_next_field() -> None:
    """Lengths keep fields apart."""
    moved = (*FIELDS[:4], "keykey_1", "", *FIELDS[6:])
    assert entry_hash(NO_HASH, 1, moved) != entry_hash(NO_HASH, 1, FIELDS)


def test_a_form_that_is_not_known_does_not_fit() -> None:
    """Though its hash would be that of its form."""
    entry = ChainedEntry(1, 2, FIELDS, entry_hash(NO_HASH, 2, FIELDS))
    assert first_misfit(NO_HASH, [entry]) is entry
