# SPDX-License-Identifier: Apache-2.0
"""A TCP server that plays an engine and answers with whatever bytes a test wants."""
import json
import re
import socket
import threading

MODELS = json.dumps({"object": "list", "data": [{"id": "m", "object": "model", "created": 1,
                                                 "owned_by": "fake"}]}).encode()
PLAIN = json.dumps({
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."},
                 "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}).encode()


def http(body=PLAIN, status="200 OK", kind="application/json", fields=()):
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *fields]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def chunked(pieces, status="200 OK", kind="text/event-stream", end=True, fields=()):
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "transfer-encoding: chunked", *fields]
    body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body + (b"0\r\n\r\n" if end else b"")


def event(content=None, finish=None, **more):
    delta = {} if content is None else {"content": content}
    return b"data: " + json.dumps({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}).encode() \
        + b"\n\n"


DONE = b"data: [DONE]\n\n"


class Request:
    def __init__(self, head, body):
        self.head, self.body = head, body
        self.line = head.split(b"\r\n")[0].decode("latin-1")
        self.fields = [tuple(p.strip() for p in line.split(":", 1))
                       for line in head.decode("latin-1").split("\r\n")[1:] if ":" in line]

    def __getitem__(self, name):
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return None


class FakeEngine:
    """`reply` is bytes, or a function of (socket, Request) that may return bytes. After bytes that
    name no length, or when `close` is set, the connection ends."""

    def __init__(self, reply=None, tls=None, close=False):
        self.reply = http() if reply is None else reply
        self.close_after = close
        self.requests = []   # generation requests, as they came
        self.left = 0        # connections that ended before their answer did
        self._tls = tls
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(128)
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.url = ("https://" if tls else "http://") + self.address
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        # A thread blocked in accept() holds the listener open: wake it.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._requests_of(connection)
        except OSError:
            pass
        finally:
            connection.close()

    def _requests_of(self, connection):
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head, buffer = buffer.split(b"\r\n\r\n", 1)
            length = re.search(rb"content-length: *(\d+)", head, re.I)
            wanted = int(length[1]) if length else 0
            while len(buffer) < wanted:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            body, buffer = buffer[:wanted], buffer[wanted:]
            if not head.startswith(b"POST"):
                known = b"/v1/models" in head.split(b"\r\n")[0]
                connection.sendall(http(MODELS) if known else http(b"{}", "404 Not Found"))
                continue
            request = Request(head, body)
            self.requests.append(request)
            answer = self.reply(connection, request) if callable(self.reply) else self.reply
            if answer:
                connection.sendall(answer)
            if self.close_after or not answer:
                return
