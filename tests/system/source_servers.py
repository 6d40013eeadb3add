"""Servers that data lie at: one that breaks as it is told to, an S3 that reckons every signature by
itself, and a Hadoop name node that redirects to its data node. Each counts what it was asked."""
import contextlib
import datetime
import email.utils
import hashlib
import hmac
import http.server
import json
import re
import secrets
import socket
import struct
import threading
import urllib.parse
from serving import HUNG_S


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=(), size=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        self.wfile.write(body)

    def wanted_range(self, size):
        """(first, end) of a Range header, or None."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        return found and (int(found[1]), min(int(found[2]) + 1 if found[2] else size, size))


class Server:
    """On a port of its own until the block ends."""

    def __init__(self, handler, host="127.0.0.1"):
        self.asked = []
        self.lock = threading.Lock()
        owner = self

        class Bound(handler):
            server_of_test = owner

        class Listener(http.server.ThreadingHTTPServer):
            request_queue_size = 64

            def handle_error(self, request, client_address):
                """A client that went away is no fault of the server's."""

        self.http = Listener((host, 0), Bound)
        self.port = self.http.server_address[1]
        self.url = f"http://{host}:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05})

    def note(self, line):
        with self.lock:
            self.asked.append(line)
            return sum(1 for other in self.asked if other == line)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


# ---- One that breaks --------------------------------------------------------------------------------


class FaultyHandler(Handler):
    def do_GET(self):
        server = self.server_of_test
        path = self.path.partition("?")[0]
        body, faults = server.files.get(path, (None, []))
        times = server.note(path)
        if body is None:
            self.answer(404, b"<html>no such page</html>")
            return
        fault = faults[times - 1] if times <= len(faults) else None
        if isinstance(fault, int):
            self.answer(fault, b"out of order")
            return
        if fault == "change":
            body = server.files[path] = (body[0] + b"#", faults)
            body = body[0]
        if callable(fault):
            fault(self)
            return
        etag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        wanted = self.wanted_range(len(body))
        if wanted and self.headers.get("If-Range", etag) != etag:
            wanted = None
        first, end = wanted or (0, len(body))
        headers = [("ETag", etag), ("Content-Type", "text/csv")]
        if wanted:
            headers.append(("Content-Range", f"bytes {first}-{end - 1}/{len(body)}"))
        piece = body[first:end]
        if fault in ("cut", "reset"):
            self.close_connection = True
            self.answer(206 if wanted else 200, piece[:max(1, len(piece) // 3)], headers, size=len(piece))
            if fault == "reset":
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            return
        self.answer(206 if wanted else 200, piece, headers)


class Faulty(Server):
    """`files`: path -> (bytes, what goes wrong the first, second ... time: a status, "cut", "reset",
    or a function of the handler)."""

    def __init__(self, files):
        super().__init__(FaultyHandler)
        self.files = dict(files)


def redirect_to(url, status=302):
    return lambda handler: handler.answer(status, headers=[("Location", url)])


def drip(handler):
    """A byte, and then nothing until the client has had enough."""
    handler.close_connection = True
    handler.answer(200, b"w", size=100000)
    handler.connection.settimeout(HUNG_S)
    handler.rfile.read(1)


# ---- S3 ---------------------------------------------------------------------------------------------


def signature(secret, method, path, query, headers, signed, scope, stamp, payload):
    """Of AWS's Signature Version 4, by its description and nobody's code."""
    pairs = sorted((urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~"))
                   for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([
        method,
        urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~"),
        "&".join(f"{k}={v}" for k, v in pairs),
        "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed),
        ";".join(signed),
        payload])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class BucketHandler(Handler):
    def refuse(self, status, code, headers=()):
        self.answer(status, f"<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>no</Message></Error>".encode(),
                    headers)

    def is_signed(self, path, query):
        server = self.server_of_test
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/([^/]+)/s3/aws4_request), "
                             r"SignedHeaders=([^,]+), Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not found:
            self.refuse(403, "AccessDenied")
            return False
        key, scope, region, signed, given = found.groups()
        signed = signed.split(";")
        if key != server.access_key:
            self.refuse(403, "InvalidAccessKeyId")
        elif region != server.region:
            self.refuse(400, "AuthorizationHeaderMalformed", [("x-amz-bucket-region", server.region)])
        elif not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
            self.refuse(400, "InvalidRequest")
        elif self.headers.get("x-amz-security-token", "") != server.token or \
                (server.token and "x-amz-security-token" not in signed):
            self.refuse(403, "InvalidToken")
        elif abs(datetime.datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
                 .replace(tzinfo=datetime.timezone.utc).timestamp() - datetime.datetime.now().timestamp()) > 900:
            self.refuse(403, "RequestTimeTooSkewed")
        elif not hmac.compare_digest(given, signature(
                server.secret_key, self.command, path, query, self.headers, signed, scope,
                self.headers["x-amz-date"], self.headers["x-amz-content-sha256"])):
            self.refuse(403, "SignatureDoesNotMatch")
        else:
            return True
        return False

    def do_GET(self):
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        server.note(f"{bucket}/{key} {self.headers.get('Range', '')}".strip())
        is_public = key.startswith("public/")
        if not (is_public and "Authorization" not in self.headers) and not self.is_signed(path, query):
            return
        if bucket != "souk-data":
            self.refuse(404, "NoSuchBucket")
        elif not key:
            self.list(dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        elif key not in server.objects:
            self.refuse(404, "NoSuchKey")
        else:
            self.give(server.objects[key])

    def do_HEAD(self):
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path).lstrip("/").partition("/")[2]
        server.note(f"HEAD {key}")
        if self.is_signed(path, query):
            self.send_response(200 if key in server.objects else 404)
            self.send_header("Content-Length", str(len(server.objects.get(key, b""))))
            self.send_header("ETag", f'"{self.etag(key)}"')
            self.end_headers()

    def etag(self, key):
        server = self.server_of_test
        return server.etags.get(key) or hashlib.md5(server.objects.get(key, b"")).hexdigest()

    # -- writing

    def taken(self):
        """The body of a request that is signed, hash and all, for the bucket; None: it was refused."""
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.bucket, _, self.key = urllib.parse.unquote(path).lstrip("/").partition("/")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if server.drops_uploads and self.command == "POST" and "uploadId" in self.query:
            server.drops_uploads -= 1
            server.uploads.clear()
        wrong = server.faults.get(f"{self.command} {self.query.get('partNumber', '')}".strip(), [])
        server.note(f"{self.command} {self.bucket}/{self.key} {sorted(self.query)}")
        if wrong:
            self.refuse(wrong.pop(0), "InternalError")
        elif not self.is_signed(path, query):
            pass
        elif self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            self.refuse(400, "XAmzContentSHA256Mismatch")
        elif self.bucket != "souk-data":
            self.refuse(404, "NoSuchBucket")
        elif "uploadId" in self.query and self.query["uploadId"] not in server.uploads:
            self.refuse(404, "NoSuchUpload")
        else:
            return body
        return None

    def do_PUT(self):
        server, body = self.server_of_test, self.taken()
        if body is None:
            return
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        if self.headers.get("If-None-Match") == "*" and self.key in server.objects:
            self.refuse(412, "PreconditionFailed")
            return
        if "partNumber" in self.query:
            server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = (etag, body)
        else:
            server.objects[self.key] = body
        self.answer(200, headers=[("ETag", etag)])

    def do_POST(self):
        server, body = self.server_of_test, self.taken()
        if body is None:
            return
        if "uploads" in self.query:
            name = f"up/load+{len(server.uploads)} ="
            server.uploads[name] = {}
            self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                             "</InitiateMultipartUploadResult>".encode())
            return
        parts = server.uploads[self.query["uploadId"]]
        named = re.findall(r"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag></Part>", body.decode())
        if [(int(n), e) for n, e in named] != [(n, parts[n][0]) for n in sorted(parts)] or \
                any(len(parts[n][1]) < 5 << 20 for n in sorted(parts)[:-1]):
            self.refuse(400, "InvalidPart")
            return
        server.objects[self.key] = b"".join(parts[n][1] for n in sorted(parts))
        digests = b"".join(bytes.fromhex(parts[n][0].strip('"')) for n in sorted(parts))
        server.etags[self.key] = f"{hashlib.md5(digests).hexdigest()}-{len(parts)}"
        del server.uploads[self.query["uploadId"]]
        if server.answers_lost:
            server.answers_lost -= 1
            self.close_connection = True
            return
        self.answer(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def do_DELETE(self):
        server = self.server_of_test
        if self.taken() is None:
            return
        if "uploadId" in self.query:
            del server.uploads[self.query["uploadId"]]
        elif server.is_stuck(self.key):
            server.unstuck.wait()
        server.objects.pop(self.key, None)
        self.answer(204)

    def give(self, body):
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        if self.headers.get("If-Match", etag) != etag:
            self.refuse(412, "PreconditionFailed")
            return
        headers = [("ETag", etag), ("Last-Modified", email.utils.formatdate(1700000000, usegmt=True))]
        wanted = self.wanted_range(len(body))
        if "Range" in self.headers and not body:
            self.refuse(416, "InvalidRange", [("Content-Range", "bytes */0")])
        elif wanted:
            first, end = wanted
            self.answer(206, body[first:end], headers + [("Content-Range", f"bytes {first}-{end - 1}/{len(body)}")])
        else:
            self.answer(200, body, headers)

    def list(self, query):
        """Two a page."""
        assert query["list-type"] == "2" and query["encoding-type"] == "url"
        keys = sorted(k for k in self.server_of_test.objects if k.startswith(query.get("prefix", "")))
        first = int(query.get("continuation-token", "0 =").partition(" ")[0])
        page, more = keys[first:first + 2], first + 2 < len(keys)
        body = "<ListBucketResult>" + f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            body += f"<NextContinuationToken>{first + 2} =</NextContinuationToken>"
        for key in page:
            body += (f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/')}</Key>"
                     f"<Size>{len(self.server_of_test.objects[key])}</Size></Contents>")
        self.answer(200, (body + "</ListBucketResult>").encode())


class Bucket(Server):
    """The bucket souk-data, in eu-central-1; below public/ it needs no signature."""

    def __init__(self, objects, token=""):
        super().__init__(BucketHandler)
        self.objects = dict(objects)
        self.uploads = {}  # by id: number -> (etag, bytes)
        self.etags = {}    # of objects that were put together of parts
        self.drops_uploads = 0  # so many times, before their parts are put together
        self.answers_lost = 0  # of those to parts that were put together
        self.faults = {}   # "PUT", "PUT 2" of a part, "POST": statuses that it is answered with first
        self.is_stuck = lambda key: False  # of whose deletion it says nothing before it is `unstuck`
        self.unstuck = threading.Event()
        # Its own, which tests look for in all of the machine's processes.
        self.access_key, self.secret_key, self.token = "AKIATEST", f"sEcReT/with+slash{secrets.token_hex(8)}", token
        self.region = "eu-central-1"

    def environment(self):
        variables = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key,
                     "AWS_REGION": self.region, "AWS_ENDPOINT_URL": self.url}
        return {**variables, "AWS_SESSION_TOKEN": self.token} if self.token else variables


# ---- Hadoop -----------------------------------------------------------------------------------------


class NameHandler(Handler):
    def refuse(self, status, exception):
        self.answer(status, json.dumps({"RemoteException": {"exception": exception, "message": "no",
                                                            "javaClassName": "x"}}).encode())

    def status(self, path, suffix=""):
        body = self.server_of_test.files.get(path)
        return {"pathSuffix": suffix, "type": "DIRECTORY" if body is None else "FILE", "length": len(body or b""),
                "modificationTime": 1700000000000, "owner": "me", "permission": "644", "blockSize": 134217728}

    def do_GET(self):
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        assert path.startswith("/webhdfs/v1/")
        path = urllib.parse.unquote(path[len("/webhdfs/v1"):])
        operation = query["op"]
        server.note(f"{operation} {path}")
        is_folder = path.endswith("/") and any(name.startswith(path) for name in server.files)
        if query.get("user.name", "dr.who") != server.user:
            self.refuse(403, "AccessControlException")
        elif path not in server.files and not is_folder:
            self.refuse(404, "FileNotFoundException")
        elif operation == "GETFILESTATUS":
            self.answer(200, json.dumps({"FileStatus": self.status(path)}).encode())
        elif operation == "LISTSTATUS":
            names = sorted({name[len(path):].partition("/")[0] + ("/" if "/" in name[len(path):] else "")
                            for name in server.files if name.startswith(path)})
            self.answer(200, json.dumps({"FileStatuses": {"FileStatus": [
                self.status(path + name, name.rstrip("/")) for name in names]}}).encode())
        elif operation == "OPEN":
            self.answer(307, headers=[("Location", f"{server.data.url}/webhdfs/v1{urllib.parse.quote(path)}?"
                                       + urllib.parse.urlencode(query))])
        else:
            self.refuse(400, "UnsupportedOperationException")


    def do_PUT(self):
        """As the real one it is asked without the bytes, and says where they go."""
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        path = urllib.parse.unquote(path[len("/webhdfs/v1"):])
        server.note(f"{query['op']} {path}")
        if self.rfile.read(int(self.headers.get("Content-Length", 0))):
            self.refuse(400, "IllegalArgumentException")
        elif query.get("user.name", "dr.who") != server.user:
            self.refuse(403, "AccessControlException")
        elif query["op"] != "CREATE" or query.get("overwrite") != "true":
            self.refuse(400, "UnsupportedOperationException")
        else:
            self.answer(307, headers=[("Location", f"{server.data.url}/webhdfs/v1{urllib.parse.quote(path)}?"
                                       + urllib.parse.urlencode(query))])


class DataHandler(Handler):
    def do_PUT(self):
        server = self.server_of_test
        path = urllib.parse.unquote(self.path.partition("?")[0][len("/webhdfs/v1"):])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if server.note(f"CREATE {path}") <= server.cuts.get(path, 0):
            self.answer(500)
            return
        server.files[path] = body
        self.answer(201, headers=[("Location", f"hdfs://somewhere{path}")])

    def do_GET(self):
        server = self.server_of_test
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        path = urllib.parse.unquote(path[len("/webhdfs/v1"):])
        offset = int(query.get("offset", 0))
        times = server.note(f"OPEN {path}")
        body = server.files[path][offset:]
        if "length" in query:
            body = body[:int(query["length"])]
        if times <= server.cuts.get(path, 0):
            self.close_connection = True
            self.answer(200, body[:len(body) // 2], size=len(body))
        else:
            self.answer(200, body, [("Content-Type", "application/octet-stream")])


class Hadoop(contextlib.ExitStack):
    """A name node and a data node; `cuts`: how often a file breaks off."""

    def __init__(self, files, user="me", cuts=None):
        super().__init__()
        self.data, self.names = Server(DataHandler), Server(NameHandler)
        self.data.files = self.names.files = dict(files)
        self.data.cuts = cuts or {}
        self.names.user = user
        self.names.data = self.data

    def __enter__(self):
        self.enter_context(self.data)
        self.enter_context(self.names)
        return self

    def address(self, path):
        return f"webhdfs://127.0.0.1:{self.names.port}{path}"
