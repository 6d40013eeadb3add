"""A market that answers by script: enough of the REST API to see what the client sends."""
import gzip
import hashlib
import http.server
import json
import struct
import threading

from zstd_frame import unpacked


def idx(shape, fill=7):
    size = 1
    for n in shape:
        size *= n
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + b"".join(
        struct.pack(">I", n) for n in shape) + bytes([fill]) * size


def write_data_set(folder):
    folder.mkdir()
    for name, shape in (("train-images-idx3", (60, 28, 28)), ("train-labels-idx1", (60,)),
                        ("t10k-images-idx3", (10, 28, 28)), ("t10k-labels-idx1", (10,))):
        (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(idx(shape)))
    return folder


class ScriptedMarket:
    def __init__(self):
        self.requests = []  # (method, path, headers, body)
        self.chunks = {}
        self.routes = {}
        self.on("GET", "/v1/server", {"name": "souk", "economy": "credits"})
        self.events = []
        market = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                market.requests.append((self.command, self.path, dict(self.headers), body))
                market.answer(self, body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def on(self, method, path, value, status=200):
        """Answers with `value`, or with the next of a list of values, the last one staying."""
        self.routes[method, path] = [list(value) if isinstance(value, list) else [value], status]

    def problem(self, method, path, status, code, detail):
        self.on(method, path, {"type": "about:blank", "title": "No", "status": status,
                               "detail": detail, "code": code}, status)

    def bodies(self, method, path):
        return [json.loads(r[3]) for r in self.requests if r[0] == method and r[1] == path]

    def reply(self, handler, status, body, content_type="application/json"):
        handler.send_response(status)
        handler.send_header("Content-Type", content_type)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler, body):
        method, path = handler.command, handler.path
        if path.startswith("/v1/chunks/") and method == "PUT":
            name = path.rsplit("/", 1)[1]
            if handler.headers.get("Content-Encoding") == "zstd":
                body = unpacked(body)
            assert hashlib.blake2b(body, digest_size=32).hexdigest() == name
            self.chunks[name] = body
            return self.reply(handler, 201, b"{}")
        if path == "/v1/chunks/missing":
            wanted = json.loads(body)["hashes"]
            missing = [h for h in wanted if h not in self.chunks]
            return self.reply(handler, 200, json.dumps({"hashes": missing}).encode())
        if path.endswith("/events") and (method, path) not in self.routes:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.send_header("Connection", "close")
            handler.end_headers()
            for name, data in self.events:
                handler.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            handler.close_connection = True
            return None
        script = self.routes.get((method, path))
        if not script:
            return self.reply(handler, 404, json.dumps(
                {"detail": f"no route {method} {path}", "code": "not_found"}).encode())
        values, status = script
        value = values.pop(0) if len(values) > 1 else values[0]
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.reply(handler, status, data)
