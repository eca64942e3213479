"""What every answer to a user says to browsers and to caches between: it is theirs alone."""

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

PRIVATE_HEADERS = {
    "cache-control": "private, no-store",
    "vary": "authorization, cookie",
    "x-content-type-options": "nosniff",
}


class PrivateAnswers(ASGIMiddleware):
    """Puts PRIVATE_HEADERS on each answer of a router: of documents, files and errors too. Problems
    have them by themselves, where no route was found."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """The answer of `next_app` with them."""

        async def send_privately(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableScopeHeaders.from_message(message).update(PRIVATE_HEADERS)
            await send(message)

        await next_app(scope, receive, send_privately)
