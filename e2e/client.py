# SPDX-License-Identifier: Apache-2.0
"""An HTTP client on raw sockets that shows what came, and lets tests send what they like."""
import json
import re
import socket
import ssl
import time

from processes import PATIENCE


class Answer:
    """One response. `end` says how its body ended: length, chunked, eof, none or cut."""

    def __init__(self, status, reason, fields, body, end, chunks=(), version="1.1"):
        self.status, self.reason, self.fields, self.body = status, reason, fields, body
        self.end, self.chunks, self.version = end, chunks, version

    def __getitem__(self, name):
        """The value of a header field, None when absent."""
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return None

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)

    def events(self):
        """Data of the server-sent events, comments left out."""
        return [line[6:] for line in self.text.split("\n") if line.startswith("data: ")]

    def deltas(self, choice=0):
        """The generated text of a streamed chat or completion."""
        out = []
        for event in self.events():
            if event == "[DONE]":
                continue
            for entry in json.loads(event).get("choices", []):
                if entry.get("index", 0) == choice:
                    out.append(entry.get("delta", {}).get("content") or entry.get("text") or "")
        return "".join(out)

    def usage(self):
        for event in reversed(self.events()):
            if event != "[DONE]" and json.loads(event).get("usage"):
                return json.loads(event)["usage"]
        return None

    def __repr__(self):
        return f"<{self.status} {self.end} {self.text[:300]!r}>"


class Closed(Exception):
    """The peer closed or reset before a whole answer had come."""

    def __init__(self, got, how):
        super().__init__(f"{how} after {got[:200]!r}")
        self.got, self.how = got, how


class Connection:
    """One TCP (or TLS) connection."""

    def __init__(self, address, tls=None, timeout=20.0, receive_buffer=None, server_name=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout * PATIENCE)
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=server_name or host)
        self.buffer = b""
        self.host = address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read_some(self):
        """More bytes into the buffer; False at the end."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        except ssl.SSLError as error:
            if "EOF" in str(error):
                return False
            raise
        self.buffer += data
        return bool(data)

    def read_until(self, mark):
        """Bytes up to and with `mark`."""
        while mark not in self.buffer:
            if not self.read_some():
                raise Closed(self.buffer, "closed")
        at = self.buffer.index(mark) + len(mark)
        out, self.buffer = self.buffer[:at], self.buffer[at:]
        return out

    def read_exactly(self, count):
        while len(self.buffer) < count:
            if not self.read_some():
                raise Closed(self.buffer, "closed")
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def read_to_end(self):
        while self.read_some():
            pass
        out, self.buffer = self.buffer, b""
        return out

    def read_head(self):
        """(status, reason, fields, version), interim answers included."""
        head = self.read_until(b"\r\n\r\n").decode("latin-1")
        lines = head.split("\r\n")
        version, status, reason = re.fullmatch(r"HTTP/(1\.[01]) (\d{3}) ?(.*)", lines[0]).groups()
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        return int(status), reason, fields, version

    def read_answer(self, head_only=False):
        """A whole answer. A body that breaks off gives end='cut'."""
        status, reason, fields, version = self.read_head()
        while status == 100:
            status, reason, fields, version = self.read_head()
        answer = Answer(status, reason, fields, b"", "none", version=version)
        if head_only or status in (204, 304):
            return answer
        try:
            self._read_body(answer)
        except Closed:
            answer.end = "cut"
        return answer

    def _read_body(self, answer):
        length = answer["content-length"]
        if (answer["transfer-encoding"] or "").lower() == "chunked":
            answer.chunks = []
            while True:
                size = int(self.read_until(b"\r\n").strip().split(b";")[0], 16)
                if size == 0:
                    self.read_until(b"\r\n")
                    answer.end = "chunked"
                    return
                chunk = self.read_exactly(size + 2)[:-2]
                answer.chunks.append(chunk)
                answer.body += chunk
        elif length is not None:
            answer.body = self.read_exactly(int(length))
            answer.end = "length"
        else:
            answer.body = self.read_to_end()
            answer.end = "eof"

    def request(self, method, path, body=None, headers=None, head_only=None, version="1.1"):
        self.send(request_bytes(self.host, method, path, body, headers, version))
        return self.read_answer(method == "HEAD" if head_only is None else head_only)

    def closed_by_peer(self, within=5.0):
        """Whether the peer closes within the time; what still came is kept."""
        end = time.monotonic() + within * PATIENCE
        self.socket.settimeout(0.1)
        while time.monotonic() < end:
            try:
                if not self.read_some():
                    return True
            except (TimeoutError, socket.timeout):
                continue
            except OSError:
                return True
        return False


def encode(body):
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def request_bytes(host, method, path, body=None, headers=None, version="1.1"):
    data = encode(body)
    lines = [f"{method} {path} HTTP/{version}", f"host: {host}"]
    fields = dict(headers or {})
    if data is not None:
        fields.setdefault("content-type", "application/json")
        fields.setdefault("content-length", str(len(data)))
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (data or b"")


def call(address, method, path, body=None, headers=None, timeout=20.0, tls=None):
    """One request on a connection of its own."""
    with Connection(address, tls=tls, timeout=timeout) as connection:
        return connection.request(method, path, body, headers)
