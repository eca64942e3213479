"""What commands print."""

import click
import msgspec
import pytest

from gateway.commands.output import instant_option, show_one, show_page

PAGE = {
    "items": [
        {"id": "a", "draining": True, "models": ["m"], "hidden": 1},
        {"id": "bcd", "draining": False, "models": None, "hidden": 2},
    ],
    "next_cursor": "Zg",
}


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Aligned columns, words for booleans, a dash for nothing, how to get more."""
    show_page(PAGE, ("id", "draining", "models"), as_json=False)
    assert capsys.readouterr().out == (
        "ID   DRAINING  MODELS\n"
        'a    yes       ["m"]\n'
        "bcd  no        -\n"
        "more: --cursor Zg\n"
    )  # fmt: skip


def test_one_subject_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """A field a line."""
    show_one({"id": "a", "limits": {"tpm": 5}}, as_json=False)
    assert capsys.readouterr().out == 'id      a\nlimits  {"tpm":5}\n'


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With everything, whatever the table would show."""
    show_page(PAGE, ("id",), as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out) == PAGE
    show_one({"id": "a"}, as_json=True)
    assert capsys.readouterr().out == '{"id":"a"}\n'


def test_instants_need_an_offset() -> None:
    """RFC 3339 becomes Unix milliseconds."""
    context, option = click.Context(click.Command("x")), click.Option(["--expires-at"])
    assert instant_option(context, option, None) is None
    assert instant_option(context, option, "1970-01-01T01:00:01+01:00") == 1000
    for bad in ("soon", "1970-01-01T00:00:00", ""):
        with pytest.raises(click.BadParameter):
            instant_option(context, option, bad)
