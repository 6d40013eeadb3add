"""Whether a request that a server of a test was sent is signed (SigV4), as AWS documents it."""
import hashlib
import hmac
import re


def signature(handler, body, secret, scope, names):
    def sign(key, text):
        return hmac.new(key, text.encode(), hashlib.sha256).digest()

    headers = "".join(f"{name}:{handler.headers[name].strip()}\n" for name in names.split(";"))
    request = "\n".join([handler.command, handler.path, "", headers, names, hashlib.sha256(body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["X-Amz-Date"], scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = sign(key, part)
    return sign(key, text).hex()


def is_signed(handler, body, key, secret, service):
    """`handler` is http.server's, of a request without a query."""
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), *SignedHeaders=([^,]+), *Signature=(\w+)",
                         handler.headers["Authorization"] or "")
    if not found:
        return False
    named, scope, names, given = found.groups()
    return (named, scope.split("/")[2]) == (key, service) and given == signature(handler, body, secret, scope, names)
