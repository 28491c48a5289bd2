"""A PostgreSQL server of the test's own: in a temporary folder, on a free port of this machine, with one database."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)  # where Debian's packages put the newest version
USER, PASSWORD = "publisher", "s3cret-pass"


@dataclass(frozen=True)
class Server:
    """A running server, which accepts this user with this password."""

    folder: Path
    port: int

    def url(self, password: str = PASSWORD, database: str = "city") -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{USER}{secret}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str, database: str = "city") -> None:
        """Run statements as the publisher, each in a transaction of its own."""
        import adbc_driver_postgresql.dbapi as dbapi

        with dbapi.connect(self.url(database=database), autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def load(self, name: str, rows: Any) -> None:
        """Create a table that holds the rows of an Arrow table."""
        import adbc_driver_postgresql.dbapi as dbapi

        with dbapi.connect(self.url()) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, rows, mode="create")
            connection.commit()

    def stop(self) -> None:
        """Stop at once, as a crash would."""
        _run("pg_ctl", "stop", "-D", str(self.folder / "data"), "-m", "immediate", check=False)


@contextmanager
def server() -> Iterator[Server]:
    """Start a server with the database `city`, and stop it."""
    with TemporaryDirectory(prefix="pg-") as place:
        folder = Path(place)
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "postgres")
        (secret := folder / "password").write_text(PASSWORD)
        secret.chmod(0o644)
        found = Server(folder, _free_port())
        data, options = str(folder / "data"), f"-p {found.port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        _run("initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "-N")
        _run("pg_ctl", "start", "-w", "-D", data, "-o", options, "-l", str(folder / "log"))
        try:
            found.execute("CREATE DATABASE city", database="postgres")
            yield found
        finally:
            found.stop()


def _run(program: str, *arguments: str, check: bool = True) -> None:
    assert BIN is not None, "this test needs Debian's package postgresql"
    owner: dict[str, Any] = {}
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        owner = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    # Its output goes to a file: the server would keep a pipe open.
    subprocess.run([BIN / program, *arguments], check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   cwd="/", **owner)  # fmt: skip


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
