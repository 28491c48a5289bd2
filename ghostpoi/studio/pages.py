"""The pages of the studio and what their forms do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ghostpoi import __version__
from ghostpoi.errors import InputError
from ghostpoi.studio.guard import PAGE_POLICY, Folders
from ghostpoi.studio.project import CHOICES, DIALS, FIELDS, LIMITS, READING, Project
from ghostpoi.studio.work import LOOK, RELEASE, TRIAL, State, Worker

PACKAGES = ("ghostpoi.studio", "ghostpoi.reports")
PART = "X-Part"  # a script asks for the part of a page that changes


def percent(value: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{digits if value < 0.2 else 0}f}%"


class Studio:
    """The file that is open, and the pages about it."""

    def __init__(self, folders: Folders, file: Path | None, end: Callable[[], None]) -> None:
        self.folders, self.end, self.worker = folders, end, Worker()
        self.project: Project | None = None
        loader = ChoiceLoader([PackageLoader(name, "assets") for name in PACKAGES])
        self.templates = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self.templates.filters |= {"count": "{:,}".format, "percent": percent, "drawing": Markup}
        if file is not None:
            self.open(file)

    @property
    def app(self) -> Starlette:
        pages = {
            "/": self.files, "/columns": self.columns, "/leaks": self.leaks, "/settings": self.settings,
            "/release": self.release, "/publish": self.publish, "/view/{name}": self.view,
            "/settings.toml": self.toml,
        }  # fmt: skip
        forms = {
            "/open": self.do_open, "/columns": self.do_columns, "/settings": self.do_settings,
            "/release": self.do_release, "/stop": self.do_stop, "/end": self.do_end,
        }  # fmt: skip
        routes: list[BaseRoute] = [Route(path, page, methods=["GET"]) for path, page in pages.items()]
        routes += [Route(path, page, methods=["POST"]) for path, page in forms.items()]
        routes += [Mount("/assets", StaticFiles(packages=[(name, "assets") for name in PACKAGES]))]
        return Starlette(routes=routes, exception_handlers={InputError: self.refused})

    # ---- what pages have in common

    def open(self, path: Path) -> None:
        """Open a file; go on with what an earlier studio left."""
        self.worker.stop()
        self.project = Project.of(path)
        self.folders.allowed(self.project.folder)
        self.project.save()
        if self.state(RELEASE).name == "interrupted":
            self.worker.start(self.project.folder / RELEASE)

    @property
    def now(self) -> Project:
        """The open file."""
        if self.project is None:
            raise InputError("no file is open; choose one first")
        return self.project

    def request(self, kind: str) -> dict[str, Any]:
        """Return what a child is asked for now."""
        project = self.now
        if kind == LOOK:
            return project.request(LOOK, "columns", "identity")
        if kind == TRIAL:
            return project.request(TRIAL, sample=self.state(LOOK).answer.get("sample", {}).get("file", ""))
        return project.request(
            RELEASE, release=str(project.out), private=str(project.private), about=project.about, audit=project.audit
        )

    def state(self, kind: str, of_request: bool = True) -> State:
        """Return how far a piece of work is; of the last request, unless it must be the present one."""
        if kind == RELEASE:
            of_request = False  # a release stays what it is when dials move
        return self.worker.state(self.now.folder / kind, self.request(kind) if of_request else None)

    def start(self, kind: str) -> None:
        self.worker.start(self.now.folder / kind, self.request(kind))

    def ensure(self, kind: str, *again: str) -> State:
        """Begin a piece of work that was not done yet, unless a release is being made, which comes first.

        `again` names states, such as failed, in which it begins as well.
        """
        state = self.state(kind)
        if state.name in ("none", "interrupted", *again) and self.worker.busy != RELEASE:
            self.start(kind)
            state = self.state(kind)
        return state

    def show(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page or, where a script asks for it, its part that changes."""
        part = bool(request.headers.get(PART))
        shared = {
            "part": part, "here": request.url.path, "project": self.project, "version": __version__,
            "busy": self.worker.busy, "released": self.project is not None and self.state(RELEASE).name == "done",
        }  # fmt: skip
        return HTMLResponse(self.templates.get_template(template).render(shared | values), status)

    async def refused(self, request: Request, error: Exception) -> Response:
        """Say why something cannot be done."""
        from ghostpoi.options import in_studio

        text = in_studio(error.text) if isinstance(error, InputError) else str(error)
        return self.show(request, "refused.html", 400, sentence=text)

    # ---- the file

    async def files(self, request: Request) -> Response:
        """List a folder."""
        given = request.query_params.get("folder")
        folder = self.folders.allowed(Path(given)) if given else self.folders.all[0]
        if not folder.is_dir():
            raise InputError("this is not a folder; choose one of the list")
        above = folder.parent if folder not in self.folders.all else None
        return self.show(request, "files.html", folder=folder, above=above, folders=self.folders.all,
                         entries=self.folders.entries(folder))  # fmt: skip

    async def do_open(self, request: Request) -> Response:
        """Open a file of the list."""
        self.open(self.folders.file((await fields(request)).get("path", "")))
        return RedirectResponse("/columns", 303)

    # ---- columns and what they reveal

    async def columns(self, request: Request) -> Response:
        """Show what each column was taken for."""
        return self.show(request, "columns.html", state=self.ensure(LOOK), fields=FIELDS, reading=READING)

    async def do_columns(self, request: Request) -> Response:
        """Take other decisions about columns, and look again."""
        form, columns = await fields(request), self.state(LOOK, False).answer.get("columns", [])
        self.project = self.now.with_columns(form, {column["name"]: column["field"] for column in columns})
        self.project.save()
        self.ensure(LOOK, "failed")
        return RedirectResponse("/leaks" if "then" in form else "/columns", 303)

    async def leaks(self, request: Request) -> Response:
        """Show what the file would reveal as it is."""
        look = self.ensure(LOOK)
        return self.show(request, "leaks.html", look=look, state=self.ensure(TRIAL) if usable(look) else look)

    # ---- dials

    async def settings(self, request: Request) -> Response:
        """Show dials, and what they do to a sample."""
        look = self.ensure(LOOK)
        state = self.ensure(TRIAL) if usable(look) else look
        return self.show(request, "settings.html", look=look, state=state, dials=DIALS, choices=CHOICES, limits=LIMITS)

    async def do_settings(self, request: Request) -> Response:
        """Move dials, and try again."""
        form = await fields(request)
        self.project = self.now.with_settings(form)
        self.project.save()
        if usable(self.ensure(LOOK)):
            self.ensure(TRIAL, "failed")
        if request.headers.get(PART):
            return await self.settings(request)
        return RedirectResponse("/release" if "then" in form else "/settings", 303)

    # ---- the release

    async def release(self, request: Request) -> Response:
        """Show how far the release is."""
        state = self.state(RELEASE)
        exists = self.now.out.exists()
        return self.show(request, "release.html", look=self.ensure(LOOK), state=state, exists=exists)

    async def do_release(self, request: Request) -> Response:
        """Begin a release, or go on with one."""
        form = await fields(request)
        if form.get("again"):
            self.worker.start(self.now.folder / RELEASE)
        else:
            project = self.now.with_release(form)
            self.folders.allowed(project.out)
            if project.out.exists() and not form.get("force"):
                raise InputError(f"{project.out.name} exists; choose another name, or tick “replace”")
            project.save()
            self.project = project
            self.worker.start(project.folder / RELEASE, self.request(RELEASE))
        return RedirectResponse("/release", 303)

    async def publish(self, request: Request) -> Response:
        """Show what was made, and what to publish."""
        state = self.state(RELEASE)
        made = state.answer.get("made", {})
        return self.show(request, "publish.html", state=state, made=made, commands=self.now.commands())

    async def view(self, request: Request) -> Response:
        """Show a page about the release, which may not ask the studio for anything."""
        made = self.state(RELEASE).answer.get("made", {})
        places = {"report": ("release", "report.html"), "officer": ("release", "dpia.html"),
                  "private": ("private", "report.html")}  # fmt: skip
        if not made or request.path_params["name"] not in places:
            raise InputError("there is no such page; make a release first")
        folder, name = places[request.path_params["name"]]
        page = self.folders.allowed(Path(made[folder]) / name)
        if not page.is_file():
            raise InputError("this page was not written; make the release again")
        return FileResponse(page, headers={"Content-Security-Policy": PAGE_POLICY})

    async def toml(self, request: Request) -> Response:
        """Return the settings file for the commands."""
        return Response(self.now.toml(), media_type="application/toml")

    # ---- ends

    async def do_stop(self, request: Request) -> Response:
        """Stop what is going on."""
        self.worker.stop()
        return RedirectResponse("/release", 303)

    async def do_end(self, request: Request) -> Response:
        """End the studio."""
        self.end()
        return self.show(request, "ended.html")


def usable(look: State) -> bool:
    """Whether a file can be tried: it was read, and every column is decided on."""
    return look.name == "done" and bool(look.answer["readable"]) and not look.answer["sentence"]


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
