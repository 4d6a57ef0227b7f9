"""The live page with its model, for one user on this machine.

The server listens on the loopback interface only and serves nothing but the page and results of its model: no file is
ever read for a request. A random token in the address, compared in constant time, keeps other users and pages of this
machine out, and checks of `Host` and `Origin` keep out pages that a browser was lured to. Requests are short, and the
model answers them one after another.
"""

from __future__ import annotations

import asyncio
import errno
import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from drkm.explorer.content import Content
from drkm.explorer.details import reconstructed, values_of
from drkm.explorer.page import UNENCODABLE, page, policy
from drkm.explorer.strips import decoded

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = "127.0.0.1"
#: maximum bytes of a request, seconds within which it must arrive, and maximum number of waiting requests
MOST_BYTES, MOST_SECONDS, MOST_WAITING = 1 << 16, 10.0, 256
#: maximum number of codes to decode at once
MOST_CODES = 64
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refusal(Exception):
    """A refused request: the status and an explanation."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class LiveModel:
    """Answers the page's requests to its model, one at a time."""

    def __init__(self, content: Content):
        self.content, self.subject = content, content.subject
        self.text = page(content.record() | {"live": True}).encode(errors=UNENCODABLE)
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def answer(self, question: Callable[[Any], np.ndarray], asked: Any) -> bytes:
        """Return the model's answer to a request, after all earlier ones."""
        if self._waiting >= MOST_WAITING:
            raise Refusal(503, "too many requests at once, try again")
        self._waiting += 1
        try:
            async with self._lock:
                found = await asyncio.to_thread(question, asked)
        finally:
            self._waiting -= 1
        little = found.dtype.newbyteorder("<")
        return np.ascontiguousarray(found).astype(little, copy=False).tobytes()

    def decode(self, asked: Any) -> np.ndarray:
        """Decode codes to samples."""
        return decoded(self.subject, self._codes(asked, MOST_CODES))

    def strips(self, asked: Any) -> np.ndarray:
        """Decode along each code, starting from the given codes."""
        return decoded(self.subject, self.content.strips.around(self._codes(asked, 1)[0]))

    def sample(self, asked: Any) -> np.ndarray:
        """Return one of the shown samples, and its reconstruction."""
        row = asked.get("row") if isinstance(asked, dict) else None
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < self.subject.count:
            raise Refusal(422, f"row: expected an integer from 0 to {self.subject.count - 1}")
        rows = np.array([row])
        pair = np.vstack([self.subject.samples[rows], reconstructed(self.subject, rows)])
        return values_of(self.subject, pair)

    def _codes(self, asked: Any, most: int) -> np.ndarray:
        width = self.content.codes.shape[1]
        wanted = f"codes: expected 1 to {most} rows of {width} finite numbers"
        try:
            codes = np.array(asked["codes"], dtype=np.float64)
        except (TypeError, KeyError, ValueError, OverflowError):
            raise Refusal(422, wanted) from None
        # Codes far outside are meaningless, and may overflow in the model.
        inside = np.abs(codes) <= 100 * np.abs(self.content.codes).max()
        if codes.ndim != 2 or not 1 <= len(codes) <= most or codes.shape[1] != width or not inside.all():
            raise Refusal(422, wanted)
        return codes


def application(live: LiveModel, token: str, hosts: tuple[str, ...]) -> Starlette:
    """Return the web application: a page and three requests, protected by a token."""
    web_server()
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    questions = {"decode": live.decode, "strips": live.strips, "sample": live.sample}
    shown = HEADERS | {"Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'"}

    async def show(request: Request) -> Response:
        _check(request, token, hosts)
        return Response(live.text, media_type="text/html", headers=shown)

    async def ask(request: Request) -> Response:
        _check(request, token, hosts)
        question = questions.get(request.path_params["question"])
        if question is None:
            raise Refusal(404, "not found")
        found = await live.answer(question, await _asked(request))
        return Response(found, media_type="application/octet-stream", headers=HEADERS)

    app = Starlette(
        routes=[
            Route("/{token}/", _refusing(show), methods=["GET"]),
            Route("/{token}/{question}", _refusing(ask), methods=["POST"]),
        ],
    )
    # A redirect would repeat the requested host.
    app.router.redirect_slashes = False
    return app


Answering = Callable[["Request"], Awaitable["Response"]]


def _refusing(answer: Answering) -> Answering:
    """Return an endpoint whose refusals are JSON."""

    async def endpoint(request: Request) -> Response:
        from starlette.responses import JSONResponse

        try:
            return await answer(request)
        except Refusal as refusal:
            # The unread rest of a request would be taken for the next one.
            more = {"Connection": "close"} if refusal.status == 413 else {}
            return JSONResponse({"error": str(refusal)}, refusal.status, headers=HEADERS | more)

    return endpoint


def _check(request: Request, token: str, hosts: tuple[str, ...]) -> None:
    """Refuse requests without the token, from another page or under another host name."""
    if request.headers.getlist("host") not in [[host] for host in hosts]:
        raise Refusal(421, "the name of the host is not that of this page")
    origins = request.headers.getlist("origin")
    if origins and origins not in [[f"http://{host}"] for host in hosts]:
        raise Refusal(403, "requests of other pages are refused")
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "requests of other pages are refused")
    if not secrets.compare_digest(request.path_params["token"].encode(), token.encode()):
        raise Refusal(404, "not found")


async def _asked(request: Request) -> Any:
    """Read a request, or refuse it if it is too long or too slow."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > MOST_BYTES:
        raise Refusal(413, f"a request has at most {MOST_BYTES} bytes")
    body = b""
    try:
        async with asyncio.timeout(MOST_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"a request has at most {MOST_BYTES} bytes")
        return json.loads(body)
    except TimeoutError:
        raise Refusal(408, "the request did not arrive in time") from None
    except (ValueError, RecursionError):
        raise Refusal(422, "a request must be JSON") from None


def web_server() -> Any:
    """Return uvicorn, or raise an error that says what to install."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ImportError("a live page needs the extra 'web': pip install 'drkm[web]'") from error
    return uvicorn


def listening(port: int) -> socket.socket:
    """Return a socket at a port of the loopback interface, 0 for any free one, where connections wait from now on."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((LOOPBACK, port))
        opened.listen(MOST_WAITING)
    except OSError as error:
        opened.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise ValueError(f"port: {port} {why}, choose another or 0 for any free one") from error
    return opened


class LiveServer:
    """A server of one live page.

    Parameters
    ----------
    content : Content
    opened : socket, optional
        Where to serve, from `listening`; by default any free port.

    Attributes
    ----------
    address : str
        Address of the page, including the token.
    """

    def __init__(self, content: Content, opened: socket.socket | None = None):
        uvicorn = web_server()
        self._socket = opened or listening(0)
        number = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        self.address = f"http://{LOOPBACK}:{number}/{token}/"
        hosts = (f"{LOOPBACK}:{number}", f"localhost:{number}")
        self._server = uvicorn.Server(
            uvicorn.Config(
                application(LiveModel(content), token, hosts),
                http="h11",
                ws="none",
                lifespan="off",
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
            )
        )

    def run(self) -> None:
        """Serve until Ctrl-C, or until `stop` is called."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True
