"""What the witnesses of a run of metering say, each by its own way: journals, Postgres, engines,
clients, and the run itself of what it did to whom."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Key = tuple[str, int, int]
"""Request, choice, attempt."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A usage record as it lies in Postgres."""

    request_id: str
    outcome: str
    source: str
    prompt: int
    output: int
    cached: int = 0
    sequences: int = 1
    ended_ms: int = 0
    final: bool = True
    flags: tuple[str, ...] = ()
    by_journal: bool = True
    """It has its place in a journal; what a reaper wrote has none, nor what ended while the disk
    failed."""


@dataclass(frozen=True, kw_only=True)
class Try:
    """An attempt as it lies in Postgres."""

    request_id: str
    choice: int
    attempt: int
    """Of its choice, from 1."""
    worker: str
    started_ms: int
    ended_ms: int
    outcome: str
    source: str | None
    prompt: int
    output: int

    @property
    def key(self) -> Key:
        """Which it is."""
        return self.request_id, self.choice, self.attempt


@dataclass(frozen=True)
class Ran:
    """A sequence by the account of the engine that ran it."""

    request_id: str
    choice: int
    attempt: int
    worker: str
    prompt: int
    output: int
    cached: int = 0

    @property
    def key(self) -> Key:
        """Which it is."""
        return self.request_id, self.choice, self.attempt


@dataclass(frozen=True)
class Asked:
    """A request as its client saw it."""

    status: int | None
    """None where no answer began."""
    request_id: str | None = None
    whole: bool = False
    error: str = ""
    """Its code, or what broke."""
    usage: tuple[int, int] | None = None
    """Prompt and output tokens, as the client was told them."""
    choices: int = 1
    """Of each prompt."""


@dataclass(frozen=True)
class Disturbance:
    """What the run did, and from when to when it was felt. Unix ms."""

    kind: str
    target: str
    from_ms: int
    to_ms: int

    def met(self, from_ms: int, to_ms: int, slack_ms: int) -> bool:
        """Whether anything of it lay in that time."""
        return self.from_ms - slack_ms <= to_ms and from_ms <= self.to_ms + slack_ms


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """All of them, once the system has come to rest."""

    admitted: Counter[str]
    """Of all journals: how many admissions each request has."""
    ended: Mapping[str, Sequence[Row]]
    """Of all journals: the accounts of its end."""
    rows: Sequence[Row]
    tries: Sequence[Try]
    ran: Sequence[Ran]
    asked: Sequence[Asked] = ()
    disturbances: Sequence[Disturbance] = ()
    dead_letters: int = 0
    missing: int = 0
    """Journal numbers that Postgres was told are lost."""

    @cached_property
    def row_of(self) -> dict[str, Row]:
        """By request."""
        return {row.request_id: row for row in self.rows}

    @cached_property
    def tries_of(self) -> dict[str, dict[Key, Try]]:
        """By request."""
        found: dict[str, dict[Key, Try]] = defaultdict(dict)
        for each in self.tries:
            found[each.request_id][each.key] = each
        return found

    @cached_property
    def ran_of(self) -> dict[str, dict[Key, Ran]]:
        """By request."""
        found: dict[str, dict[Key, Ran]] = defaultdict(dict)
        for each in self.ran:
            found[each.request_id][each.key] = each
        return found

    @cached_property
    def asked_of(self) -> dict[str, Asked]:
        """By request, where its client saw an id."""
        return {each.request_id: each for each in self.asked if each.request_id is not None}


@dataclass(frozen=True)
class Finding:
    """Something that must not be."""

    rule: str
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.what}"


@dataclass
class Term:
    """Differences of one kind: of how many sequences or requests, and of how many output tokens."""

    count: int = 0
    tokens: int = 0


@dataclass
class Verdict:
    """What came of judging."""

    findings: list[Finding] = field(default_factory=list)
    terms: dict[str, Term] = field(default_factory=lambda: defaultdict(Term))
    """Engines' output minus rows' output, kind by kind."""
    exact: int = 0
    """Rows that say the engine's own count, and are its count."""

    def find(self, rule: str, subject: str, what: str) -> None:
        """It must not be."""
        self.findings.append(Finding(rule, subject, what))

    def explain(self, name: str, tokens: int) -> int:
        """It may be, and is said. Returns the tokens."""
        term = self.terms[name]
        term.count += 1
        term.tokens += tokens
        return tokens
