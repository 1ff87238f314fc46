"""The application behind the page: addresses, and which function answers each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, StreamingResponse

from headwise.errors import HeadwiseError, ParameterError
from headwise.masks import checked_mask
from headwise.progress import Progress
from headwise.version import __version__
from headwise.web import answers
from headwise.web.asking import MOST_FILES, Asking, Upload
from headwise.web.jobs import Jobs, as_event
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

#: Scales that may be run from the page.
RUNNABLE = ("miniature", "laptop")


def create_app(
    store: str | os.PathLike[str], hosts: Iterable[str], token: str | None = None
) -> Any:
    """Build the application.

    Args:
        store: Where scans and exhibits are stored.
        hosts: Host headers that are ours, with the port.
        token: What clients must present; None on the loopback interface.

    Returns:
        An ASGI application.
    """
    app = FastAPI(title="headwise", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.jobs, app.state.asking, app.state.store = Jobs(), Asking(), str(store)
    _add_errors(app)
    _add_views(app)
    _add_ask(app)
    _add_theory(app)
    _add_jobs(app)
    _add_exhibits(app)
    _add_models(app)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    return Guard(app, hosts, token)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HeadwiseError)
    def refused(_: Request, error: HeadwiseError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=400)


def _add_views(app: FastAPI) -> None:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True)
    )

    def page(view: str) -> Callable[[], HTMLResponse]:
        def shown() -> HTMLResponse:
            known = {"views": VIEWS, "view": view, "version": __version__, "runnable": RUNNABLE}
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
        given, files = await _form(request)
        jobs, asking = app.state.jobs, app.state.asking

        def work(progress: Progress) -> Any:
            return asking.first(job.key, files, given, progress)

        job = jobs.add("advice", work)
        return JSONResponse({"job": job.key})

    @app.post("/api/ask/{key}")
    async def ask_again(key: str, request: Request) -> JSONResponse:
        given = await _fields(request)
        return JSONResponse(await run_in_threadpool(app.state.asking.another, key, given))


async def _form(request: Request) -> tuple[dict[str, Any], list[Upload]]:
    async with request.form(max_files=MOST_FILES + 1, max_fields=40) as form:
        files = [
            Upload(Path(value.filename or "file").name, await value.read())
            for _, value in form.multi_items()
            if isinstance(value, UploadFile)
        ]
        given = form.get("given")
    return _checked(json.loads(given) if isinstance(given, str) else {}), files


async def _fields(request: Request) -> dict[str, Any]:
    try:
        return _checked(await request.json())
    except ValueError:
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
    def law(length: int, mask: str = "none", fraction: float = 0.9) -> Any:
        return answers.law(length, checked_mask(mask), fraction)

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
    def events(key: str) -> StreamingResponse:
        lines = (as_event(state) for state in app.state.jobs.events(key))
        return StreamingResponse(lines, media_type="text/event-stream")

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
    def one(folder: str, name: str) -> Any:
        return answers.exhibit(f"{folder}/{name}")

    @app.get("/api/exhibits/{folder}/{name}/rows.csv")
    def rows(folder: str, name: str) -> PlainTextResponse:
        text = answers.exhibit_rows(f"{folder}/{name}")
        saved = {"content-disposition": f'attachment; filename="{folder}_{name}.csv"'}
        return PlainTextResponse(text, media_type="text/csv", headers=saved)

    @app.post("/api/exhibits/{folder}/{name}/run")
    async def run(folder: str, name: str, request: Request) -> Any:
        scale = (await _fields(request)).get("scale")
        if scale not in RUNNABLE:
            raise ParameterError(
                f"expected one of {', '.join(RUNNABLE)}, got {scale!r}", hint="choose another scale"
            )
        work = _reproducing(f"{folder}/{name}", scale, app.state.store)
        return {"job": app.state.jobs.add(f"{folder}/{name} at {scale}", work).key}


def _reproducing(name: str, scale: str, store: str) -> Callable[[Progress], Any]:
    """Run an exhibit into the store: what is there is not computed again."""
    from headwise.papers.catalogue import entries

    entries([name])  # refuses an unknown name before anything is queued

    def work(progress: Progress) -> Any:
        import headwise

        found = headwise.reproduce(name, scale=scale, store=store, progress=progress)
        return {"exhibit": name, "notes": list(found.notes)}

    return work


def _add_models(app: FastAPI) -> None:
    from headwise.web import models

    @app.get("/api/models")
    def listed() -> Any:
        return models.scanned(app.state.store)

    @app.get("/api/models/{key}")
    def one(key: str) -> Any:
        return models.heads(app.state.store, key)
