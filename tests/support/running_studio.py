"""The studio as its own process, and what its pages say to a client without a browser."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

WAIT_S = 300


class Desk:
    """A running studio and a visitor with its cookie."""

    def __init__(self, *arguments: Path | str) -> None:
        command = [sys.executable, "-m", "ghostpoi", "studio", *map(str, arguments), "--no-browser"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        self.entry = re.search(r"http://\S+", self.process.stderr.readline())[0]  # type: ignore[index]
        self.base = re.match(r"http://[^/]+", self.entry)[0]  # type: ignore[index]
        self.opener = build_opener(HTTPCookieProcessor(CookieJar()))
        self.get(self.entry.removeprefix(self.base))

    def get(self, path: str, part: bool = False) -> str:
        """Return a page, or the part that changes."""
        request = Request(self.base + path, headers={"X-Part": "yes"} if part else {})
        return str(self.opener.open(request, timeout=600).read().decode())

    def post(self, page: str, **form: str) -> str:
        """Send a form as a page of the studio does."""
        request = Request(self.base + page, urlencode(form).encode(), {"Origin": self.base})
        return str(self.opener.open(request, timeout=600).read().decode())

    def until(self, path: str, done: Callable[[str], bool] = lambda text: "data-running" not in text) -> str:
        """Return the part of a page that changes once it says something; by default, that work is done."""
        until = time.monotonic() + WAIT_S
        while not done(text := self.get(path, part=True)):
            assert time.monotonic() < until, text
            time.sleep(0.1)
        return text

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """End it; return the exit code and what it said."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        said = self.process.communicate(timeout=600)[1]
        return self.process.returncode, said


@contextmanager
def running(*arguments: Path | str) -> Iterator[Desk]:
    desk = Desk(*arguments)
    try:
        yield desk
    finally:
        desk.end(signal.SIGKILL)
