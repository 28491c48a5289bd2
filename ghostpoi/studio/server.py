"""The server of the studio: on 127.0.0.1, for one person, until it is ended."""

import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.studio.guard import Folders, Guard
from ghostpoi.studio.pages import Studio

HOST = "127.0.0.1"


def serve(file: Path | None, folders: list[Path], port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the pages until somebody presses the button or Ctrl-C."""
    known = Folders(folders)
    opened = None if file is None else known.file(str(file))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, port))
            bound.listen()  # the browser may ask before the server answers
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise InputError(f"{option('port', port)} cannot be used ({why}); leave it out, or give another") from None
        port, token = bound.getsockname()[1], secrets.token_urlsafe(32)
        servers: list[uvicorn.Server] = []
        studio = Studio(known, opened, lambda: setattr(servers[0], "should_exit", True))
        settings = uvicorn.Config(
            Guard(studio.app, port, token), log_level="warning", access_log=False, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=2, ws="none", lifespan="off",
        )  # fmt: skip
        servers.append(uvicorn.Server(settings))
        address = f"http://{HOST}:{port}/{'columns' if opened else ''}?token={token}"
        say(f"the studio runs on this machine alone; open {address}")
        say("end it with its button, or with Ctrl-C here")
        if browser:
            webbrowser.open(address)
        try:
            servers[0].run(sockets=[bound])
        except KeyboardInterrupt:
            pass
        finally:
            studio.worker.end()
        say("the studio has ended; unfinished work goes on when you open the file again")
