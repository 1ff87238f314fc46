"""The application behind the page: addresses, and which function answers each."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, StreamingResponse

from headwise.errors import HeadwiseError, ParameterError
from headwise.faces import spoken
from headwise.mask_names import checked_mask
from headwise.progress import Progress
from headwise.version import __version__
from headwise.web import answers, law_table
from headwise.web.asking import MOST_FILES, Asking, Upload
from headwise.web.jobs import Job, Jobs, Work, as_event
from headwise.web.runs import RUNNABLE, Runs
from headwise.web.safety import Guard

HERE = Path(__file__).parent

#: Address of a view -> its name in the navigation.
VIEWS = {
    "ask": "Ask",
    "law": "Law",
    "bounds": "Bounds",
    "models": "Models",
    "exhibits": "Exhibits",
}


def create_app(
    store: str | os.PathLike[str], hosts: Iterable[str], token: str | None = None
) -> Any:
    """Build the application.

    Args:
        store: Where scans and exhibits are stored.
        hosts: Host headers that are ours, with the port.
        token: What clients must present; None on the loopback interface.

    Returns:
        A FastAPI application that any ASGI server runs.
    """
    app = FastAPI(title="headwise", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.jobs, app.state.asking, app.state.store = Jobs(), Asking(), str(store)
    _add_errors(app)
    _add_views(app)
    _add_ask(app)
    _add_theory(app)
    _add_jobs(app)
    _add_exhibits(app)
    _add_runs(app)
    _add_models(app)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    return Guard(app, hosts, token)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HeadwiseError)
    def refused(_: Request, error: HeadwiseError) -> JSONResponse:
        return JSONResponse({"error": spoken(str(error), "page")}, status_code=400)


def _add_views(app: FastAPI) -> None:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True)
    )

    def page(view: str) -> Callable[[], HTMLResponse]:
        def shown() -> HTMLResponse:
            known = {"views": VIEWS, "view": view, "version": __version__, "runnable": RUNNABLE}
            known["store"] = app.state.store
            return HTMLResponse(environment.get_template(f"{view}.html").render(known))

        return shown

    for view in VIEWS:
        app.get(f"/{view}")(page(view))

    @app.get("/")
    def home() -> RedirectResponse:
        return RedirectResponse("/ask")

    @app.get("/plotly.js")
    def plotly_script() -> Response:
        from plotly.offline import get_plotlyjs

        kept = {"cache-control": "max-age=86400"}
        return Response(get_plotlyjs(), media_type="text/javascript", headers=kept)


def _add_ask(app: FastAPI) -> None:
    @app.post("/api/ask")
    async def ask(request: Request) -> JSONResponse:
        kept = TemporaryDirectory(prefix="headwise-page-")
        try:
            given, files = await _form(request, Path(kept.name))
            job = app.state.jobs.add("advice", _advising(app.state.asking, files, given, kept))
        except BaseException:
            kept.cleanup()
            raise
        return JSONResponse({"job": job.key})

    @app.post("/api/ask/{key}")
    async def ask_again(key: str, request: Request) -> JSONResponse:
        given = await _fields(request)
        return JSONResponse(await run_in_threadpool(app.state.asking.another, key, given))


def _advising(
    asking: Asking, files: list[Upload], given: dict[str, Any], kept: TemporaryDirectory[str]
) -> Work:
    """Advise on files in a folder that is deleted afterwards."""

    def work(progress: Progress) -> Any:
        with kept:
            return asking.first(secrets.token_urlsafe(12), files, given, progress)

    return work


async def _form(request: Request, folder: Path) -> tuple[dict[str, Any], list[Upload]]:
    """The fields of a form, and its files, written into a folder under names of our own."""
    async with request.form(max_files=MOST_FILES + 1, max_fields=40) as form:
        files = []
        for _, value in form.multi_items():
            if isinstance(value, UploadFile):
                place = folder / f"upload{len(files)}"
                await run_in_threadpool(_write, value, place)
                files.append(Upload(Path(value.filename or "file").name, place))
        given = form.get("given")
    try:
        return _checked(json.loads(given) if isinstance(given, str) else {}), files
    except (ValueError, RecursionError):
        raise ParameterError("expected JSON in the request", hint="reload the page") from None


def _write(value: UploadFile, place: Path) -> None:
    with place.open("wb") as file:
        shutil.copyfileobj(value.file, file)


async def _fields(request: Request) -> dict[str, Any]:
    try:
        return _checked(await request.json())
    except (ValueError, RecursionError):
        raise ParameterError("expected JSON in the request", hint="reload the page") from None


def _checked(given: Any) -> dict[str, Any]:
    """Plain values only; what they mean is checked by the function that takes them."""
    if not isinstance(given, dict):
        raise ParameterError("expected an object in the request", hint="reload the page")
    return {
        str(name): value
        for name, value in given.items()
        if isinstance(value, str | int | float | bool) and value != ""
    }


def _add_theory(app: FastAPI) -> None:
    @app.get("/api/law")
    def law(length: int, mask: str = "none", percent: int = 90, head_dim: int = 64) -> Any:
        return law_table.answer(length, checked_mask(mask), percent, head_dim)

    @app.get("/api/head")
    def head(length: int, head_dim: int, mask: str = "none", seed: int = 0) -> Any:
        return answers.simulated_head(length, head_dim, checked_mask(mask), seed)

    @app.get("/api/bounds")
    def bounds(width: int, error: float) -> Any:
        return answers.bounds(width, error)


def _add_jobs(app: FastAPI) -> None:
    @app.get("/api/jobs")
    def all_jobs() -> Any:
        return app.state.jobs.all()

    @app.get("/api/jobs/{key}/events")
    async def events(key: str) -> Response:
        if app.state.jobs.get(key) is None:
            return JSONResponse({"error": "there is no such job"}, status_code=404)

        async def lines() -> AsyncIterator[str]:
            async for state in app.state.jobs.events(key):
                yield as_event(state)

        return StreamingResponse(lines(), media_type="text/event-stream")

    @app.post("/api/jobs/{key}/cancel")
    def cancel(key: str) -> Any:
        return {"cancelled": app.state.jobs.cancel(key)}


def _add_exhibits(app: FastAPI) -> None:
    @app.get("/api/exhibits")
    def listed() -> Any:
        return answers.exhibits()

    @app.get("/api/verdicts")
    def verdicts() -> Any:
        return answers.verdicts()

    @app.get("/api/exhibits/{folder}/{name}")
    def one(folder: str, name: str, scale: str = "") -> Any:
        if scale:
            return answers.stored_exhibit(f"{folder}/{name}", scale, app.state.store)
        return answers.exhibit(f"{folder}/{name}")

    @app.get("/api/exhibits/{folder}/{name}/rows.csv")
    def rows(folder: str, name: str, scale: str = "") -> PlainTextResponse:
        text = answers.exhibit_rows(f"{folder}/{name}", scale)
        saved = {"content-disposition": f'attachment; filename="{folder}_{name}.csv"'}
        return PlainTextResponse(text, media_type="text/csv", headers=saved)


def _add_runs(app: FastAPI) -> None:
    jobs, runs = app.state.jobs, Runs(app.state.store)

    @app.get("/api/runs")
    def unfinished() -> Any:
        return runs.unfinished()

    @app.post("/api/exhibits/{folder}/{name}/run")
    async def start(folder: str, name: str, request: Request) -> Any:
        exhibit, scale = f"{folder}/{name}", str((await _fields(request)).get("scale", ""))
        work = await run_in_threadpool(runs.work, exhibit, scale)
        job = await run_in_threadpool(_started, exhibit, scale, work)
        return {"job": job.key}

    def _started(exhibit: str, scale: str, work: Work) -> Job:
        runs.begin(exhibit, scale)
        try:
            job = jobs.add(f"{exhibit} at {scale}", work)
        except HeadwiseError:
            runs.forget(exhibit, scale)
            raise
        runs.follow(exhibit, scale, job.key)
        return job

    @app.post("/api/runs/forget")
    async def forget(request: Request) -> Any:
        given = await _fields(request)
        return {"forgotten": runs.forget(str(given.get("exhibit")), str(given.get("scale")))}


def _add_models(app: FastAPI) -> None:
    store = app.state.store

    @app.get("/api/models")
    def listed() -> Any:
        return _models().scanned(store)

    @app.get("/api/models/{key}")
    def one(key: str) -> JSONResponse:
        return JSONResponse(_models().heads(store, key))  # plain already: 10,000 rows need no check

    @app.get("/api/models/{key}/picture")
    def picture(key: str, layer: str, head: int) -> Any:
        return _models().picture(store, key, layer, head)

    @app.get("/api/reductions")
    def reduced() -> Any:
        return _models().reductions(store)


def _models() -> ModuleType:
    """What reads the store, imported on first use: the database layer takes a second."""
    from headwise.web import models

    return models
