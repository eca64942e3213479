"""Sessions: begun with a password, known by a secret that a browser keeps in a cookie."""

from gateway.administration.store import Store
from gateway.domain.account import OpenSession, Session, User
from gateway.domain.permissions import Caller


class SessionVerbs(Store):
    """The verbs on sessions."""

    async def log_in(self, email: str, password: str, *, address: str | None) -> Session:
        """Begin a session. Unauthorized, in the same words and after the same time, where the
        address is unknown, the password wrong, or the account locked or disabled; Overloaded where
        too many log in at once."""
        raise NotImplementedError

    async def caller_by_session(self, secret: str) -> Caller | None:
        """Who the live session belongs to; None where it is unknown, ended, idle for too long, or
        its user is disabled."""
        raise NotImplementedError

    async def user_by_session(self, secret: str) -> User | None:
        """The user of `caller_by_session`."""
        caller = await self.caller_by_session(secret)
        return None if caller is None else caller.user

    async def log_out(self, secret: str) -> None:
        """End that session, if it is one."""
        raise NotImplementedError

    async def log_out_everywhere(self, actor: str, email: str) -> int:
        """End every session of a user; how many there were."""
        raise NotImplementedError

    async def list_sessions(self, email: str) -> list[OpenSession]:
        """A user's live sessions, the latest first."""
        raise NotImplementedError

    async def end_session(self, actor: str, email: str, session_id: str) -> None:
        """End one session of a user. NotFound where they have no live one of that id."""
        raise NotImplementedError
