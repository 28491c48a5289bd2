"""Who may talk to the studio."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.studio.guard import MOST_BYTES, POLICY, Folders, Guard
from ghostpoi.studio.pages import Studio

PORT, TOKEN = 8123, "a-token"
HOST = f"127.0.0.1:{PORT}"


class Answer:
    def __init__(self, messages: list[Any]) -> None:
        self.status: int = messages[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        self.text = b"".join(one.get("body", b"") for one in messages[1:]).decode()

    @property
    def cookie(self) -> str:
        return self.headers["set-cookie"].partition(";")[0]


def ask(app: Guard, path: str = "/", method: str = "GET", body: bytes = b"", **headers: str) -> Answer:
    """Send one request; headers are written with _ for -."""
    path, _, query = path.partition("?")
    given = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        given = {"origin": f"http://{HOST}", "content-length": str(len(body))} | given
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
             "headers": [(k.encode(), v.encode()) for k, v in given.items()], "scheme": "http", "root_path": "",
             "http_version": "1.1", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1)}  # fmt: skip
    sent: list[Any] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not left:
            await asyncio.sleep(60)  # the browser waits
        return left.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return Answer(sent)


@pytest.fixture
def ended() -> list[bool]:
    return []


@pytest.fixture
def app(tmp_path: Path, ended: list[bool]) -> Guard:
    (tmp_path / "city.csv").write_text("user,poi,lat,lon,time\n")
    return Guard(Studio(Folders([tmp_path]), None, lambda: ended.append(True)).app, PORT, TOKEN)


def test_the_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(app: Guard) -> None:
    entered = ask(app, f"/?token={TOKEN}")
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= set(entered.headers["set-cookie"].split("; "))
    assert TOKEN not in entered.cookie
    assert ask(app, cookie=entered.cookie).status == 200
    assert ask(app, cookie=entered.cookie, host=f"localhost:{PORT}").status == 200


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=another", "/columns", "/view/report", "/settings.toml", "/x"]
)
def test_nothing_is_shown_without_the_cookie(app: Guard, path: str) -> None:
    refused = ask(app, path)
    assert (refused.status, "city.csv" in refused.text) == (401, False)
    assert ask(app, path, cookie=f"ghostpoi-studio-{PORT}=guessed").status == 401


def test_the_token_does_not_let_a_form_in(app: Guard) -> None:
    assert ask(app, f"/end?token={TOKEN}", "POST").status == 401


@pytest.mark.parametrize(
    "host", ["", "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "[::1]:8123"]
)
def test_other_names_of_the_host_are_refused(app: Guard, host: str) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    assert ask(app, cookie=cookie, host=host).status == 421


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": ""}, {"origin": f"https://{HOST}"},
     {"origin": f"http://localhost:{PORT}"}, {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}],
)  # fmt: skip
def test_forms_of_other_sites_are_refused(app: Guard, ended: list[bool], headers: dict[str, str]) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    assert ask(app, "/end", "POST", cookie=cookie, **headers).status == 403
    assert ended == []
    assert ask(app, "/end", "POST", cookie=cookie).status == 200
    assert ended == [True]


def test_large_forms_and_other_methods_are_refused(app: Guard) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    assert ask(app, "/open", "POST", b"x" * (MOST_BYTES + 1), cookie=cookie).status == 413
    assert ask(app, "/open", "POST", b"", cookie=cookie, content_length="").status == 413
    assert [ask(app, "/", method, cookie=cookie).status for method in ("PUT", "DELETE", "OPTIONS")] == [405] * 3


def test_every_answer_forbids_other_sites(app: Guard) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    for answer in (ask(app), ask(app, cookie=cookie), ask(app, "/no", cookie=cookie), ask(app, host="evil")):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "http" not in POLICY
    assert "unsafe" not in POLICY


def test_pages_link_to_nothing_outside(app: Guard) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    for path in ("/", "/assets/studio.css", "/assets/style.css", "/assets/studio.js"):
        text = ask(app, path, cookie=cookie).text
        assert text
        assert not re.findall(r"(?:https?:)?//[a-z]|url\(", text.replace("//\n", ""))


def test_only_files_of_the_named_folders_are_opened(app: Guard, tmp_path: Path) -> None:
    cookie = ask(app, f"/?token={TOKEN}").cookie
    outside = tmp_path.parent / f"{tmp_path.name}-other"
    outside.mkdir()
    (outside / "secret.csv").write_text("user\n")
    (tmp_path / "link.csv").symlink_to(outside / "secret.csv")
    (tmp_path / "folder").symlink_to(outside)
    assert "city.csv" in ask(app, cookie=cookie).text
    assert "link.csv" not in ask(app, cookie=cookie).text
    for place in (outside / "secret.csv", tmp_path / "link.csv", tmp_path / ".." / outside.name / "secret.csv",
                  Path("/etc/passwd"), tmp_path / "none.csv", tmp_path, Path("city.csv")):  # fmt: skip
        refused = ask(app, "/open", "POST", f"path={place}".encode(), cookie=cookie)
        assert refused.status == 400, place
        assert not list(place.parent.glob("*.private"))
    for folder in (outside, tmp_path.parent, tmp_path / "folder", tmp_path / ".."):
        assert ask(app, f"/?folder={folder}", cookie=cookie).status == 400


@given(st.text(max_size=40))
def test_no_path_leads_outside(text: str) -> None:
    folders = Folders([Path(__file__).parent])
    try:
        found = folders.file(text)
    except Exception as e:
        assert type(e).__name__ == "InputError"  # noqa: PT017  # hypothesis tries many texts
    else:
        assert found.is_relative_to(Path(__file__).parent)
