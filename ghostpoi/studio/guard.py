"""Who may talk to the studio, and which files it may touch: those in the folders named at the start.

Only a browser of the person who started it may talk to it. The address that the terminal shows carries a token, which
the first request exchanges for a cookie. Requests must name this machine as their host, which refuses names that
another site makes point here, and only pages of the studio may send forms.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from ghostpoi.errors import InputError

MOST_BYTES = 100_000  # of a form
MOST_ENTRIES = 500  # of a folder that are listed
TABLE = re.compile(r"\.(csv|tsv|txt|dat|parquet|jsonl?|ndjson|geojson|xlsx)(\.(gz|xz|bz2|zst|zip))?$", re.IGNORECASE)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A page about a release brings a policy of its own. Without an origin, it cannot ask the studio for anything.
PAGE_POLICY = "sandbox allow-scripts; frame-ancestors 'none'"
HEADERS = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
Next = Callable[[Any, Any, Any], Awaitable[None]]


class Guard:
    """Refuses requests before any page sees them, and adds headers to what pages answer."""

    def __init__(self, app: Next, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie, self.session = f"ghostpoi-studio-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":  # starting and ending; there are no sockets
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = Request(scope)
        if answer := self._refused(request) or self._let_in(request):
            await answer(scope, receive, self._with_headers(send))
        else:
            await self.app(scope, receive, self._with_headers(send))

    def _refused(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("This is not an address of the studio.", 421)
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return PlainTextResponse("The studio does not know this method.", 405)
        site = request.headers.get("sec-fetch-site", "same-origin")
        if request.headers.get("origin") != f"http://{host}" or site != "same-origin":
            return PlainTextResponse("This form does not come from the studio.", 403)
        length = request.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return PlainTextResponse("This form is too large.", 413)
        return None

    def _let_in(self, request: Request) -> Response | None:
        """Exchange the token for the cookie; refuse who has neither."""
        given = request.query_params.get("token")
        if given is not None and request.method == "GET" and _same(given, self.token):
            answer = RedirectResponse(request.url.path, 303)
            answer.set_cookie(self.cookie, self.session, path="/", httponly=True, samesite="strict")
            return answer
        if _same(request.cookies.get(self.cookie, ""), self.session):
            return None
        return PlainTextResponse("Open the address that ghostpoi studio shows in the terminal.", 401)

    @staticmethod
    def _with_headers(send: Any) -> Any:
        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                own = HEADERS | {"Content-Security-Policy": POLICY}
                new = ((name.lower().encode(), value.encode()) for name, value in own.items())
                message["headers"] = [*message["headers"], *(one for one in new if one[0] not in given)]
            await send(message)

        return answer


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


class Entry(NamedTuple):
    """A file or folder of a list."""

    name: str
    path: Path
    folder: bool
    bytes: int


class Folders:
    """The folders that the studio was started with."""

    def __init__(self, folders: list[Path]) -> None:
        self.all = list(dict.fromkeys(folder.resolve(strict=True) for folder in folders))

    def allowed(self, path: Path) -> Path:
        """Return a path without links; refuse one that lies elsewhere. It need not exist."""
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):
            raise InputError("this path cannot be read; choose a file of the list") from None
        if not any(found.is_relative_to(folder) for folder in self.all):
            raise InputError("this path lies outside the folders that the studio was started with")
        return found

    def file(self, text: str) -> Path:
        """Return a file of check-ins that may be opened."""
        path = self.allowed(Path(text))
        if not path.is_file():
            raise InputError(f"{path.name} is not a file; choose a file of the list")
        return path

    def entries(self, folder: Path) -> list[Entry]:
        """List folders, and files that may hold check-ins; what is hidden or private is left out."""
        found = list[Entry]()
        for path in sorted(folder.iterdir(), key=lambda one: one.name.lower()):
            if path.name.startswith(".") or path.name.endswith(".private") or len(found) == MOST_ENTRIES:
                continue
            try:
                inside, stat = self.allowed(path), path.stat()
            except (InputError, OSError):
                continue
            if inside.is_dir():
                if not (inside / "manifest.json").exists():
                    found.append(Entry(path.name, inside, True, 0))
            elif TABLE.search(path.name):
                found.append(Entry(path.name, inside, False, stat.st_size))
        return sorted(found, key=lambda one: one.folder)
