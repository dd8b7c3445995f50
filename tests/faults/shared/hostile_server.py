"""An HTTP server that misbehaves in fifty ways. It speaks raw bytes: no library would send these.

Each case is a function of (connection, request, content). A request has `begin`, the byte that the
client asked to go on from, and `count`, how often this case and client were asked before. Run alone,
it prints its port and serves a file:

    hostile_server.py FILE        /CASE/CLIENT, CASE by number or name; /ranges/: what was asked for
"""
import dataclasses
import gzip
import pathlib
import re
import socket
import socketserver
import struct
import sys
import threading
import time
import urllib.parse
import zlib

STALL_S = 15


@dataclasses.dataclass
class Request:
    """A client's request."""
    begin: int
    count: int
    base: str


CASES = {}


def case(name=None):
    """Puts a function into CASES."""
    def put(function):
        CASES[name or function.__name__] = function
        return function
    return put


def head(status, *headers):
    """The start of an answer."""
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *headers, "")).encode("latin-1")


def honest(request, content):
    """Headers and body as they should be."""
    size = len(content)
    if request.begin >= size:
        page = b"<h1>Range Not Satisfiable</h1>"
        return head("416 Range Not Satisfiable", f"Content-Length: {len(page)}", f"Content-Range: bytes */{size}",
                    "Connection: close"), page
    body = content[request.begin:]
    lines = [f"Content-Length: {len(body)}", "Connection: close"]
    if request.begin:
        lines.append(f"Content-Range: bytes {request.begin}-{size - 1}/{size}")
    return head("206 Partial Content" if request.begin else "200 OK", *lines), body


def answer(status, *headers, body=lambda request, content: b"an error page"):
    """A case that sends one fixed kind of answer."""
    def send(connection, request, content):
        text = body(request, content)
        connection.sendall(head(status, *headers, "Connection: close") + text)
    return send


def ranged(span, body):
    """206 with a Content-Range of its own making."""
    def send(connection, request, content):
        text = body(request, content)
        line = span.format(begin=request.begin, size=len(content), last=len(content) - 1)
        connection.sendall(head("206 Partial Content", f"Content-Length: {len(text)}", *(
            [f"Content-Range: {line}"] if line else []), "Connection: close") + text)
    return send


def rest(request, content):
    """The content that was requested."""
    return content[request.begin:]


def reset(connection):
    """Ends with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


for _status in ("204 No Content", "304 Not Modified", "400 Bad Request", "401 Unauthorized",
                "403 Forbidden", "404 Not Found", "418 Teapot", "429 Too Many Requests",
                "500 Internal Server Error", "503 Service Unavailable", "599 Odd"):
    CASES[f"status {_status[:3]}"] = answer(_status)
CASES |= {
    "status 999": answer("999 What"),
    "status 200 with an error page": answer("200 OK", "Content-Length: 13"),
    "status 206 unasked, no range": ranged("", rest),
    "206 that begins one byte early": ranged("bytes {begin}-{last}/{size}", lambda r, c: b"?" + rest(r, c)),
    "206 from another place": ranged("bytes 7-{last}/{size}", lambda r, c: c[7:]),
    "206 that lies about its place": ranged("bytes {begin}-{last}/{size}", lambda r, c: c[:len(c) - r.begin]),
    "206 with a range of words": ranged("bytes all of it", rest),
    "206 with a negative range": ranged("bytes -5-{last}/{size}", rest),
    "206 with a range of 30 digits": ranged("bytes 1" + "0" * 29 + "-{last}/{size}", rest),
    "206 with two ranges": ranged("bytes {begin}-9,20-{last}/{size}", lambda r, c: c[:20]),
    "206 in parts": answer("206 Partial Content", "Content-Type: multipart/byteranges; boundary=x",
                           body=lambda r, c: b"--x\r\nContent-Range: bytes 0-9/99\r\n\r\n" + c[:10]),
    "416 always": answer("416 Range Not Satisfiable", "Content-Length: 0", body=lambda r, c: b""),
    "redirect to itself": answer("302 Found", "Location: ?", body=lambda r, c: b""),
    "redirect without a place": answer("302 Found", body=lambda r, c: b""),
    "redirect to a file": answer("302 Found", "Location: file:///etc/passwd"),
    "redirect to gopher": answer("301 Moved", "Location: gopher://127.0.0.1:9/x"),
    "redirect to ftp": answer("307 Temporary", "Location: ftp://127.0.0.1/x"),
    "redirect to a closed port": answer("302 Found", "Location: http://127.0.0.1:9/"),
    "redirect to nonsense": answer("302 Found", "Location: http://[::bad/\x01"),
    "longer than it says": answer("200 OK", "Content-Length: 100", body=lambda r, c: c + b"more"),
    "more than there is": answer("200 OK", body=lambda r, c: c + b"more than there is"),
    "shorter than it says": answer("200 OK", "Content-Length: 1000000", body=lambda r, c: c[:500]),
    "says -1 bytes": answer("200 OK", "Content-Length: -1", body=lambda r, c: c[:500]),
    "says 1e30 bytes": answer("200 OK", "Content-Length: 1" + "0" * 30, body=lambda r, c: c[:500]),
    "two lengths": answer("200 OK", "Content-Length: 5", "Content-Length: 9", body=lambda r, c: c[:9]),
    "one bit is wrong": answer("200 OK", body=lambda r, c: c[:50] + bytes([c[50] ^ 1]) + c[51:]),
    "gzip unasked": answer("200 OK", "Content-Encoding: gzip", body=lambda r, c: gzip.compress(c)),
    "gzip of gzip bomb": answer("200 OK", "Content-Encoding: gzip",
                                body=lambda r, c: zlib.compress(bytes(50 << 20), 9)),
    "chunk of no number": answer("200 OK", "Transfer-Encoding: chunked", body=lambda r, c: b"zz\r\nabc"),
    "chunk of 1e18 bytes": answer("200 OK", "Transfer-Encoding: chunked",
                                  body=lambda r, c: b"fffffffffffffff\r\n" + c),
    "chunks that never end": answer("200 OK", "Transfer-Encoding: chunked",
                                    body=lambda r, c: b"10\r\n" + c[:16] + b"\r\n"),
    "unknown transfer encoding": answer("200 OK", "Transfer-Encoding: rot13", body=lambda r, c: c),
    "empty": answer("200 OK", "Content-Length: 0", body=lambda r, c: b""),
}


@case("nothing at all")
def _(connection, request, content):
    pass


@case("reset at once")
def _(connection, request, content):
    reset(connection)


@case("reset half-way")
def _(connection, request, content):
    start, body = honest(request, content)
    connection.sendall(start + body[:len(body) // 3])
    time.sleep(0.1)
    reset(connection)


@case("silence")
def _(connection, request, content):
    time.sleep(STALL_S)


@case("stall in the headers")
def _(connection, request, content):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-")
    time.sleep(STALL_S)


@case("stall in the body")
def _(connection, request, content):
    start, body = honest(request, content)
    connection.sendall(start + body[:len(body) // 3])
    time.sleep(STALL_S)


@case("a byte now and then")
def _(connection, request, content):
    start, body = honest(request, content)
    connection.sendall(start)
    for i in range(len(body)):
        connection.sendall(body[i:i + 1])
        time.sleep(0.1)


@case("headers without end")
def _(connection, request, content):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for i in range(100000):
        connection.sendall(b"X-%d: %s\r\n" % (i, b"y" * 1000))


@case("one header of 10 MB")
def _(connection, request, content):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(10):
        connection.sendall(b"y" * (1 << 20))
    connection.sendall(b"\r\n\r\n" + content)


@case("not HTTP")
def _(connection, request, content):
    connection.sendall(b"\x00\xff\x1b[2J SSH-2.0-lies\r\n\r\n" + content)


@case("bare body, HTTP 0.9")
def _(connection, request, content):
    connection.sendall(content)


@case("TLS")
def _(connection, request, content):
    connection.sendall(b"\x15\x03\x01\x00\x02\x02\x28")


@case("continue without end")
def _(connection, request, content):
    for _ in range(20000):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


@case("body without end")
def _(connection, request, content):
    connection.sendall(head("200 OK"))
    while True:
        connection.sendall(content * 50)


@case("redirects without end")
def _(connection, request, content):
    connection.sendall(head("302 Found", f"Location: {request.base}&n={time.monotonic_ns()}",
                            "Content-Length: 0", "Connection: close"))


@case("zero byte in a header")
def _(connection, request, content):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n" + content[:100])


# Responses of an honest but clumsy server; the file must arrive complete.
@case("good")
def _(connection, request, content):
    connection.sendall(b"".join(honest(request, content)))


@case("good, ranges unknown")
def _(connection, request, content):
    connection.sendall(head("200 OK", f"Content-Length: {len(content)}", "Connection: close") + content)


@case("good, chunked")
def _(connection, request, content):
    parts = [content[i:i + 777] for i in range(0, len(content), 777)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    connection.sendall(head("200 OK", "Transfer-Encoding: chunked", "Connection: close") + body)


@case("good, no length")
def _(connection, request, content):
    connection.sendall(head("200 OK", "Connection: close") + content)


@case("good after a redirect")
def _(connection, request, content):
    if "&hop" in request.base:
        connection.sendall(b"".join(honest(request, content)))
    else:
        connection.sendall(head("301 Moved", f"Location: {request.base}&hop", "Content-Length: 0",
                                "Connection: close"))


@case("good the second time")
def _(connection, request, content):
    if request.count == 0:
        reset(connection)
    else:
        connection.sendall(b"".join(honest(request, content)))


@case("good after an error page")
def _(connection, request, content):
    if request.count == 0:
        answer("503 Service Unavailable")(connection, request, content)
    else:
        connection.sendall(b"".join(honest(request, content)))


@case("error page without end")
def _(connection, request, content):
    connection.sendall(head("503 Service Unavailable"))
    while True:
        connection.sendall(content * 50)


@case("good, a third each time")
def _(connection, request, content):
    start, body = honest(request, content)
    connection.sendall(start + (body if request.count > 1 else body[:len(body) // 3]))


@case("good, in small pieces")
def _(connection, request, content):
    start, body = honest(request, content)
    for i in range(0, len(start + body), 100):
        connection.sendall((start + body)[i:i + 100])


class Handler(socketserver.BaseRequestHandler):
    """Reads one request and misbehaves."""

    def handle(self):
        data = b""
        while b"\r\n\r\n" not in data and len(data) < 1 << 16:
            got = self.request.recv(1 << 16)
            if not got:
                return
            data += got
        path = data.split(b" ")[1].decode("latin-1")
        found = re.match(r"/([^/]+)/([^&?]*)", path)
        if not found:
            return
        if found[1] == "ranges":
            body = "\n".join(self.server.ranges).encode()
            self.request.sendall(head("200 OK", f"Content-Length: {len(body)}", "Connection: close") + body)
            return
        span = re.search(rb"(?i)range: bytes=(\d+)-", data)
        key = (found[1], found[2])
        with self.server.lock:
            count = self.server.counts[key] = self.server.counts.get(key, -1) + 1
            self.server.ranges.append(span[0].decode().lower() if span else "")
        port = self.server.server_address[1]
        request = Request(int(span[1]) if span else 0, count, f"http://127.0.0.1:{port}{path}")
        name = urllib.parse.unquote(found[1])
        send = list(CASES.values())[int(name)] if name.isdigit() else CASES[name]
        send(self.request, request, self.server.content)


class Server(socketserver.ThreadingTCPServer):
    """Serves every case under /NUMBER/CLIENT and /NAME/CLIENT."""
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.counts, self.ranges = content, {}, []
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients that hang up are the point of it


if __name__ == "__main__":
    server = Server(pathlib.Path(sys.argv[1]).read_bytes())
    print(server.server_address[1], flush=True)
    while True:
        time.sleep(3600)
