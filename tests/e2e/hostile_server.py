"""An HTTP server that misbehaves in every way a download has to survive.

hostile_server.py FILE: prints its port, then serves FILE under /CASE for every case below. /drop
breaks off after half of what was asked for, once for each client run; "log" holds the Range headers.
"""

import http.server
import pathlib
import sys
import time

content = pathlib.Path(sys.argv[1]).read_bytes()
half = len(content) // 2
ranges = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def start(self, status, headers, length):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()

    def send(self, status, body, headers=None, length=None):
        self.start(status, headers or {}, len(body) if length is None else length)
        self.wfile.write(body)
        self.close_connection = True

    def asked_from(self):
        text = self.headers.get("Range", "")
        ranges.append(text)
        return int(text.removeprefix("bytes=").rstrip("-")) if text else 0

    def part(self, begin, end=None, claimed=None):
        body = content[begin:end]
        span = f"bytes {begin if claimed is None else claimed}-{len(content) - 1}/{len(content)}"
        status = 206 if self.headers.get("Range") else 200
        headers = {"Content-Range": span} if status == 206 else {}
        self.send(status, body, headers, len(content) - begin)

    def do_GET(self):
        name = self.path.strip("/")
        if name == "ranges":
            self.send(200, "\n".join(ranges).encode())
            return
        begin = self.asked_from()
        if begin >= len(content):
            self.send(416, b"")
        elif name == "good":
            self.part(begin)
        elif name in ("drop", "short"):  # always half of what is left
            self.part(begin, begin + max(1, (len(content) - begin) // 2) if name == "drop" else half)
        elif name == "no_ranges":
            self.send(200, content)
        elif name == "wrong_range":
            self.part(0, None, 0) if begin else self.part(0, half)
        elif name == "long":
            self.send(200, content + b"more than there is")
        elif name == "endless":
            self.start(200, {}, 1 << 50)
            while True:
                self.wfile.write(content)
        elif name == "damaged":
            self.send(200, content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :])
        elif name == "loop":
            self.send(302, b"", {"Location": "/loop"})
        elif name == "to_file":
            self.send(302, b"", {"Location": "file:///etc/passwd"})
        elif name == "to_good":
            self.send(302, b"", {"Location": "/good"})
        elif name == "stall":
            self.start(200, {}, len(content))
            self.wfile.write(content[:half])
            self.wfile.flush()
            time.sleep(60)
        elif name == "silent":
            time.sleep(60)
        elif name == "garbage":
            self.wfile.write(b"\x00\xff not HTTP at all\r\n\r\n")
            self.close_connection = True
        elif name.isdigit():
            self.send(int(name), b"an error page")
        else:
            self.send(404, b"no such case")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that hang up are the point of it


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
