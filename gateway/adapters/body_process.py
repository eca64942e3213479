"""The process that reads large bodies for a gateway: questions on its standard input, replies on
its standard output. It ends when its input does, so it outlives no gateway."""

import signal
import sys
from typing import BinaryIO

import msgspec

from gateway.adapters.body_frames import LENGTH, Question, answer

_questions = msgspec.msgpack.Decoder(Question)


def serve(questions: BinaryIO, replies: BinaryIO) -> None:
    """Answer one question after the other until there are no more."""
    while head := questions.read(LENGTH.size):
        (length,) = LENGTH.unpack(head)
        question = _questions.decode(questions.read(length))
        body = questions.read(question.body_bytes)
        reply = answer(question.endpoint, question.headers, body)
        replies.write(LENGTH.pack(len(reply)) + reply)
        replies.flush()


def main() -> None:
    """Serve the gateway that started this process. A Ctrl-C is the gateway's to deal with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
