"""JSON messages, one per line, over a socket that keeps nobody waiting.

    channel.send({"state": "ready"})          # what the other side does not take yet is sent by `flush`
    channel.receive()                         # what has arrived; None when the other side is gone

A message that was cut short, because its sender was killed, is none. What is no JSON object, nests deeper than `DEEPEST` or is longer than
`LONGEST` ends the connection: whoever reads a message may walk through it, and send it on.
"""

import json
import select
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _socket import socket

CHUNK = 1 << 16
DEEPEST = 100
LONGEST = 1 << 28  # bytes

Message = dict[str, Any]


class Channel:
    """See the module."""

    def __init__(self, connection: "socket") -> None:
        connection.setblocking(False)
        self.socket = connection
        self.arrived, self.unsent = b"", b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, *messages: Message) -> None:
        """Send, or keep for later; to somebody who is gone nothing is sent, and `receive` tells."""
        self.unsent += b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        self.flush()

    def flush(self) -> None:
        """Send what was kept, as far as it goes."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.unsent = b""

    def receive(self) -> list[Message] | None:
        """The messages that have arrived whole; None at the end, and for what is not a message."""
        ended = False
        try:
            while data := self.socket.recv(CHUNK):
                self.arrived += data
            ended = True
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        *lines, self.arrived = self.arrived.split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            return None
        if len(self.arrived) > LONGEST or not all(map(is_message, messages)):
            return None
        return messages or (None if ended else [])

    def wait(self, seconds: float | None = None) -> None:
        """Until something has arrived, or the time is over; what was kept is sent meanwhile."""
        poll = select.poll()  # select() knows no more than 1024 files
        poll.register(self.socket, select.POLLIN | (select.POLLOUT if self.unsent else 0))
        poll.poll(None if seconds is None else 1000 * seconds)
        self.flush()

    def close(self) -> None:
        self.socket.close()


def is_message(value: Any) -> bool:
    """Return True for a JSON object that is nested no deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        containers = [
            item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)
        ]
        if not containers:
            return isinstance(value, dict)
        level = [inner for container in containers for inner in container]
    return False
