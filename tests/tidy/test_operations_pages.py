"""What the pages for operators list is what there is."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.cli import COMMANDS
from gateway.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "operations"


def test_every_setting_is_listed_with_what_it_is_for() -> None:
    """Once each, in `running.md`; none that there is not."""
    table = (PAGES / "running.md").read_text().partition("## Settings")[2]
    listed = re.findall(r"^\| `(WEIR_[A-Z_]+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(f"WEIR_{field.name.upper()}" for field in fields(Settings))


def test_defaults_are_those_of_the_code() -> None:
    """Numbers as they are, sizes in MiB and the like."""
    units = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
    table = (PAGES / "running.md").read_text().partition("## Settings")[2]
    rows = re.findall(r"^\| `WEIR_([A-Z_]+)` \| ([^|]*) \|", table, re.MULTILINE)
    said = {name.lower(): value.strip("` ") for name, value in rows}
    for field in fields(Settings):
        value = said[field.name]
        if value == "required":
            assert field.name in ("database_url", "redis_url", "journal_dir")
        elif isinstance(field.default, bool):
            assert value == str(field.default).lower(), field.name
        elif isinstance(field.default, int):
            number, _, unit = value.partition(" ")
            assert int(number) * units.get(unit, 1) == field.default, field.name
        else:
            assert value == (field.default or "empty"), field.name


def test_commands_in_the_pages_exist() -> None:
    """Of every `weir …` that stands there, in a block or in a sentence."""
    named = set()
    for page in PAGES.glob("*.md"):
        named |= set(
            re.findall(r"(?:^|`)(?:\.venv/bin/)?weir ([a-z-]+)", page.read_text(), re.MULTILINE)
        )
    assert named <= COMMANDS.keys()
    assert {"restore", "migrate", "journal", "worker", "check"} <= named


def slug(heading: str) -> str:
    """As a page's anchors are made of its headings."""
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["README", "running", "upgrading", "backup"])
def test_links_lead_somewhere(name: str) -> None:
    """To files that are there, and headings that they have."""
    page = PAGES / f"{name}.md"
    for path, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", page.read_text()):
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), path
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
        assert not anchor or anchor[1:] in map(slug, headings), (path, anchor)
