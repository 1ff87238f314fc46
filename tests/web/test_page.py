"""The page as a client sees it: views, answers, jobs, and requests that are refused."""

import asyncio
import io
import json
import socket
import threading
import time

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import headwise
from headwise import scan
from headwise.attention import HeadGeometry, mha
from headwise.cli.app import main
from headwise.errors import BadInputError
from headwise.reduction import Cut, Reduction, Score
from headwise.reduction.stored import keep_reduction
from headwise.web import answers, law_table
from headwise.web.app import VIEWS, create_app
from headwise.web.jobs import MOST_WAITING, Jobs
from headwise.web.law_table import LENGTHS
from headwise.web.runs import Runs
from headwise.web.safety import MOST_BYTES
from headwise.web.server import _bound

HOST = "127.0.0.1:8765"
PAGE = {"host": HOST, "x-headwise": "1"}


@pytest.fixture
def client(tmp_path):
    app = create_app(tmp_path / "results.db", [HOST])
    return TestClient(app, base_url=f"http://{HOST}")


def answer_of(client, given, files=()):
    sent = {"given": (None, json.dumps(given))}
    parts = [*sent.items(), *(("files", file) for file in files)]
    job = client.post("/api/ask", files=parts, headers=PAGE).json()["job"]
    lines = client.get(f"/api/jobs/{job}/events").text.strip().split("\n\n")
    return json.loads(lines[-1].removeprefix("data: "))


def last(jobs, job):
    """The last state of a job."""

    async def states():
        return [state async for state in jobs.events(job.key)]

    return asyncio.run(states())[-1]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_an_address(client, view):
    found = client.get(f"/{view}")
    assert found.status_code == 200
    assert "aria-current" in found.text
    assert "script-src 'self'" in found.headers["content-security-policy"]


def test_the_first_address_leads_to_ask(client):
    assert client.get("/").url.path == "/ask"


def test_no_address_outside_is_named(client):
    for view in VIEWS:
        text = client.get(f"/{view}").text
        assert "//" not in text.replace("</", "").replace("<!--", "")


def test_numbers_are_answered_as_by_advise(client):
    state = answer_of(client, {"length": 256, "width": 128})
    assert state["state"] == "done"
    wanted = headwise.advise(length=256, width=128).as_json()
    assert state["result"]["answer"] == wanted["answer"]
    assert "headwise advise" in state["result"]["copy"]["command"]


def test_a_slider_answers_from_the_same_measurement(client):
    tokens = np.random.default_rng(0).normal(size=(8, 24, 16))
    file = io.BytesIO()
    np.save(file, tokens)
    first = answer_of(client, {"width": 32}, [("tokens.npy", file.getvalue())])["result"]
    start = time.perf_counter()
    found = client.post(f"/api/ask/{first['key']}", json={"params": 2048}, headers=PAGE)
    assert time.perf_counter() - start < 2
    assert found.json()["choices"][0]["costs"]["parameters"] <= 2048
    assert found.json()["curves"] == first["curves"]


def test_a_config_is_read(client):
    config = {"model_type": "bert", "hidden_size": 384, "num_attention_heads": 12}
    state = answer_of(client, {}, [("config.json", json.dumps(config).encode())])
    assert state["result"]["family"] == "bert"
    assert "--config config.json" in state["result"]["copy"]["command"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("tokens.npy", b"not numbers"),
        ("../../x.npy", b""),
        ("a.png", b"x"),
    ],
)
def test_bad_files_are_refused_in_one_line(client, name, content):
    state = answer_of(client, {"width": 32}, [(name, content)])
    assert state["state"] == "failed"
    assert state["error"]
    assert "\n" not in state["error"]
    assert "Error" not in state["error"]


def test_law_and_bounds_are_those_of_python(client):
    found = client.get("/api/law?length=128").json()
    assert found["critical_head_dim"] == headwise.law(128).critical_head_dim
    found = client.get("/api/bounds?width=64&error=0.1").json()
    assert found["rank"] == sorted(found["rank"])
    assert all(a >= b for a, b in zip(found["log10_heads"], found["log10_heads"][1:], strict=False))


def test_a_simulated_head_has_at_least_the_rank_of_its_used_columns(client):
    found = client.get("/api/head?length=40&head_dim=8").json()
    weights = np.array(found["weights"])
    assert np.allclose(weights.sum(axis=1), 1, atol=0.01)
    assert found["used"] == sorted(set(weights.argmax(axis=1).tolist()))
    assert len(found["used"]) <= found["high"] < 40


@pytest.mark.parametrize(
    "address",
    ["/api/law?length=1", "/api/law?length=64&mask=odd", "/api/head?length=9999&head_dim=2"],
)
def test_values_out_of_range_are_refused(client, address):
    found = client.get(address)
    assert found.status_code == 400
    assert "expected" in found.json()["error"]


def test_an_exhibit_is_shown_with_its_rows(client):
    found = client.get("/api/exhibits/rank2026/table_2").json()
    assert found["parts"][-1]["verdict"]
    assert client.get("/api/exhibits/rank2026/table_2/rows.csv").text.startswith("key")
    assert len(client.get("/api/exhibits").json()) > 30


def test_an_unknown_exhibit_or_scale_is_refused(client):
    assert client.get("/api/exhibits/rank2026/nothing").status_code == 400
    ran = client.post("/api/exhibits/rank2026/table_2/run", json={"scale": "paper"}, headers=PAGE)
    assert ran.status_code == 400


def test_without_a_store_no_model_is_listed_and_none_is_made(client, tmp_path):
    assert client.get("/api/models").json() == []
    assert not (tmp_path / "results.db").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 400),
        ({"host": "127.0.0.1"}, 400),
        ({"host": HOST}, 403),
        ({**PAGE, "origin": "http://evil.example"}, 403),
        ({**PAGE, "origin": "null"}, 403),
        ({**PAGE, "content-length": str(MOST_BYTES + 1)}, 413),
    ],
)
def test_requests_of_other_pages_are_refused(client, headers, status):
    assert client.post("/api/ask", content=b"x", headers=headers).status_code == status


def test_who_comes_before_the_server_is_ready_waits():
    with _bound("127.0.0.1", 0) as listening:
        socket.create_connection(listening.getsockname(), timeout=5).close()


def test_a_token_is_asked_for_once(tmp_path):
    app = create_app(tmp_path / "results.db", [HOST], token="secret")
    client = TestClient(app, base_url=f"http://{HOST}")
    assert client.get("/ask").status_code == 403
    assert client.get("/ask?token=wrong").status_code == 403
    found = client.get("/ask?token=secret")
    assert found.status_code == 200
    assert "token" not in str(found.url)
    assert client.get("/law").status_code == 200


def test_jobs_run_one_after_the_other_and_can_be_cancelled():
    jobs = Jobs()

    def endless(progress):
        progress.start("waiting", 10**9)
        while True:
            time.sleep(0.01)
            progress.advance()

    first, second = jobs.add("first", endless), jobs.add("second", lambda progress: 7)
    while first.state != "running":
        time.sleep(0.01)
    assert [job["ahead"] for job in jobs.all()] == [1, 0]
    assert jobs.cancel(first.key)
    assert last(jobs, second)["result"] == 7
    assert first.state == "cancelled"
    assert not jobs.cancel(first.key)


def test_a_job_that_fails_leaves_the_queue_alive():
    jobs = Jobs()
    broken = jobs.add("broken", lambda progress: 1 / 0)
    assert last(jobs, broken)["state"] == "failed"
    assert last(jobs, jobs.add("next", lambda progress: 1))["result"] == 1


def test_no_more_work_is_taken_than_people_would_give():
    jobs, go = Jobs(), threading.Event()
    first = jobs.add("first", lambda progress: go.wait(30))
    waiting = [jobs.add("next", lambda progress: None) for _ in range(MOST_WAITING)]
    with pytest.raises(BadInputError, match="waiting already"):
        jobs.add("one too many", lambda progress: None)
    go.set()
    assert last(jobs, waiting[-1])["state"] == "done"
    assert first.state == "done"


def test_a_run_is_remembered_until_it_is_done(tmp_path):
    place = str(tmp_path / "results.db")
    Runs(place).begin("rank2026/table_2", "miniature")
    (found,) = Runs(place).unfinished()
    assert (found["exhibit"], found["stored"], found["job"]) == ("rank2026/table_2", "missing", "")
    assert Runs(place).forget("rank2026/table_2", "miniature")
    assert Runs(place).unfinished() == []


@pytest.mark.parametrize("text", ["", "[", "7", '[{"exhibit": "no/such", "scale": "laptop"}]'])
def test_a_damaged_list_of_runs_is_as_good_as_none(tmp_path, text):
    (tmp_path / "unfinished-runs.json").write_text(text)
    assert Runs(str(tmp_path / "results.db")).unfinished() == []


def test_the_stored_law_is_the_law():
    for length, mask in [(64, "none"), (23, "causal"), (4096, "none")]:
        found = law_table.answer(length, mask, 90, 16)
        percents, dims = [90], [16]
        wanted = law_table.computed(length, mask, percents, dims)
        assert found["critical_head_dim"] == wanted["critical"][0]
        assert found["at"] == wanted["at"][0]
        assert found["barrier"] == wanted["barrier"]
    assert list(law_table.stored()) == [f"{n} {m}" for m in ("none", "causal") for n in LENGTHS]


def test_sentences_name_fields_of_the_page(client):
    found = answer_of(client, {"length": 256, "width": 128})["result"]
    told = [
        found["question"],
        found["caveat"],
        *found["reasons"],
        *(each["words"] for each in found["findings"]),
    ]
    assert "set “Task”" in found["question"]
    assert not [words for words in told if "`" in words or "pass " in words.lower()]


def test_a_scanned_head_has_a_spectrum_and_a_pattern(tmp_path):
    place = str(tmp_path / "results.db")
    tokens = torch.randn(1, 9, 12, generator=torch.Generator().manual_seed(0))
    scan(mha(HeadGeometry.standard(12, heads=3)), tokens, store=place)
    ours = TestClient(create_app(place, [HOST]), base_url=f"http://{HOST}")
    (one,) = ours.get("/api/models").json()
    assert (one["heads"], one["tokens"]) == (3, 9)
    rows = ours.get(f"/api/models/{one['key']}").json()["rows"]
    at = f"layer={rows[2]['layer']}&head=2"
    found = ours.get(f"/api/models/{one['key']}/picture?{at}").json()
    assert np.allclose(np.sum(found["pattern"], axis=1), 1, atol=0.01)
    assert found["spectrum"] == sorted(found["spectrum"], reverse=True)
    assert sum(np.square(found["spectrum"])) / found["spectrum"][0] ** 2 == pytest.approx(
        rows[2]["stable_rank"], rel=1e-3
    )


def test_a_stored_reduction_is_listed(tmp_path):
    place, score = str(tmp_path / "results.db"), Score("perplexity", 20.0, 0.5)
    cut, whole = (Cut("latent", rank=rank, value_rank=rank) for rank in (8, 16))
    found = Reduction(None, (cut,), whole, 0.1, score, score, (256, 128), (900, 700))
    told = {"model": "models/mine", "text": "words", "asked": {"kv_bytes": "50%"}, "seed": 0}
    for _ in range(2):
        keep_reduction(place, found, **told)
    ours = TestClient(create_app(place, [HOST]), base_url=f"http://{HOST}")
    (row,) = ours.get("/api/reductions").json()["rows"]
    assert row[:2] == ["models/mine", "kv bytes 50%"]
    assert row[-1] == "50%"


def test_a_cookie_that_is_none_is_no_token(tmp_path):
    app = create_app(tmp_path / "results.db", [HOST], token="secret")
    client = TestClient(app, base_url=f"http://{HOST}")
    assert client.get("/ask", headers={"cookie": "a,b=1; headwise_token"}).status_code == 403
    assert client.get("/ask", headers={"cookie": "headwise_token=secret"}).status_code == 200


def test_json_that_is_nested_without_end_is_refused(client):
    found = client.post("/api/ask/x", content=b"[" * 100_000, headers=PAGE)
    assert found.status_code == 400
    assert found.json()["error"].startswith("expected JSON in the request")
    part = ("given", (None, "[" * 100_000))
    assert client.post("/api/ask", files=[part], headers=PAGE).status_code == 400


def test_numbers_may_end_in_k_and_others_are_refused(client):
    found = answer_of(client, {"length": "2k", "width": "64"})
    assert "2,000 tokens" in found["result"]["question"]
    refused = answer_of(client, {"length": "many", "width": 64})
    assert refused["error"].startswith("expected a whole number for “Tokens”, got 'many'")


@pytest.mark.parametrize("name", ["empty.txt", "x.exe", "mine.npy"])
def test_an_error_names_the_file_that_was_dropped(client, name):
    found = answer_of(client, {"width": 32}, [(name, b"")])
    assert name in found["error"]
    assert "dropped" not in found["error"] and "tmp" not in found["error"]


def test_values_of_a_config_that_nobody_gave_are_named(client):
    config = {"model_type": "bert", "hidden_size": 128, "num_attention_heads": 2}
    found = answer_of(client, {}, [("config.json", json.dumps(config).encode())])["result"]
    assert "vocab_size" in json.loads(found["copy"]["config"])
    assert "vocab_size 32000" in found["remarks"]["config"]


def test_values_that_agree_are_counted_among_all_that_are_published():
    row = {"exhibit": "a/b", "title": "t"}
    tally = {"agrees": 35, "differs": 2, "undecided": 3}
    part = {"source": "ours", "scale": "paper", "verdict": "", "tally": tally, "claims": []}
    found = answers._verdict(row, part)
    assert (found["agreed"], found["total"], found["compared"]) == (35, 40, "values")
    assert found["agreement"] == 35 / 37  # sorts exhibits by what is decided


def test_an_exhibit_says_what_disagrees_and_what_is_compared(client):
    (part,) = client.get("/api/exhibits/heads2024/figure_positions").json()["parts"]
    assert part["disagreement"].startswith(
        "Values that differ from the paper: 22 higher and 0 lower."
    )
    assert part["cells"][0]["statistic"] == "least of 2 seeds"
    assert part["tables"][0]["title"].startswith("Mean over seeds")
    assert max(len(cell) for row in part["tables"][0]["rows"] for cell in row[3:]) <= 8
    (level,) = part["figures"][0]["layout"]["annotations"]
    assert level["y"] == pytest.approx(np.log10(part["figures"][0]["layout"]["shapes"][0]["y0"]))


def test_bounds_hold_half_the_width(client):
    assert 384 in client.get("/api/bounds?width=768&error=0.1").json()["rank"]


def test_a_host_and_a_port_that_cannot_be_used_are_told_apart(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for options, words in (
            (["--host", "no.such.host.invalid", "--token", "t" * 20], "pass another --host"),
            (["--port", str(port)], "pass another --port"),
        ):
            with pytest.raises(SystemExit) as stopped:
                main(["serve", "--no-browser", *options])
            assert stopped.value.code == 1
            assert words in capsys.readouterr().err
