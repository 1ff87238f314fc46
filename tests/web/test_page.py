"""The page as a client sees it: views, answers, jobs, and requests that are refused."""

import io
import json
import time

import numpy as np
import pytest
from starlette.testclient import TestClient

import headwise
from headwise.web.app import VIEWS, create_app
from headwise.web.jobs import Jobs
from headwise.web.safety import MOST_BYTES

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
    assert list(jobs.events(second.key))[-1]["result"] == 7
    assert first.state == "cancelled"
    assert not jobs.cancel(first.key)


def test_a_job_that_fails_leaves_the_queue_alive():
    jobs = Jobs()
    broken = jobs.add("broken", lambda progress: 1 / 0)
    assert list(jobs.events(broken.key))[-1]["state"] == "failed"
    assert list(jobs.events(jobs.add("next", lambda progress: 1).key))[-1]["result"] == 1
