"""The page in a real browser: every view, every button, by mouse and by keyboard."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from web_server import Server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

ROOT = Path(__file__).parents[2]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 800}
CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "hidden_size": 384,
    "num_attention_heads": 12,
    "max_position_embeddings": 256,
}
#: What each view shows once it is ready.
READY = {
    "ask": "#answer table tbody tr",
    "law": "#head .plot svg",
    "bounds": "#curve .plot svg",
    "models": "#pattern .plot svg",
    "exhibits": "#totals a",
}


class Visit:
    """A page that notes errors and requests to other hosts."""

    def __init__(self, browser, server, viewport=WIDE, scheme="light"):
        self._context = browser.new_context(
            viewport=viewport,
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.page, self.faults, self._server = self._context.new_page(), [], server
        self.page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)

    def open(self, address, ready=None):
        self.page.goto(f"{self._server.address}/{address}")
        ready = ready or READY[re.split(r"[?#]", address)[0]]
        self.page.wait_for_selector(ready, state="attached")
        return self.page

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def _asked(self, request):
        if not request.url.startswith((self._server.address, "data:", "blob:")):
            self.faults.append(f"a request to {request.url}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.close()


@pytest.fixture
def visit(chromium, server):
    with Visit(chromium, server) as found:
        yield found
        assert found.faults == []


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_no_view_breaks_an_accessibility_rule_or_overflows(chromium, server, viewport, scheme):
    from axe_playwright_python.sync_playwright import Axe

    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    broken = {}
    with Visit(chromium, server, viewport, scheme) as found:
        for view in READY:
            page = found.open(view)
            named = Axe().run(page, options=rules).response["violations"]
            broken[view] = [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in named]
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= viewport["width"], f"{view} is {wide} pixels wide"
        assert found.faults == []
    assert not [rule for rules in broken.values() for rule in rules], broken


def test_axe_finds_a_missing_label(chromium, server):
    from axe_playwright_python.sync_playwright import Axe

    with Visit(chromium, server) as found:
        page = found.open("bounds")
        page.evaluate("document.querySelector('label[for=width]').remove()")
        assert "label" in [rule["id"] for rule in Axe().run(page).response["violations"]]


def test_a_dropped_config_is_answered_and_sliders_rank_again(visit):
    page = visit.open("ask")
    config = {"name": "config.json", "mimeType": "application/json"}
    page.set_input_files("#files", config | {"buffer": json.dumps(CONFIG).encode()})
    page.click("button.main")
    expect(page.locator("#question")).to_have_text(re.compile("^bert"))
    assert "width 384" in page.inner_text("#question")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    before = page.inner_text("#verdict")
    page.focus("#params")
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#verdict")).not_to_have_text(before)
    assert asked
    assert all(re.search(r"/api/ask/[\w-]+$", url) for url in asked)
    _every_button_copies(page)


def _every_button_copies(page):
    wanted = {
        "layer": r"nn\.MultiheadAttention|fitting\(geometry",
        "config": r"hidden_size|# ",
        "command": r"^headwise advise --config config\.json --params \d+$",
        "python": r"headwise\.advise\(config='config\.json', params=\d+\)",
    }
    for name, pattern in wanted.items():
        page.click(f"[data-copy={name}]")
        page.wait_for_selector("#copied:has-text('Copied')")
        assert re.search(pattern, page.evaluate("navigator.clipboard.readText()")), name


def test_a_bad_file_is_refused_in_a_line_that_can_be_read(visit):
    page = visit.open("ask")
    page.set_input_files("#files", {"name": "a.npy", "mimeType": "x/y", "buffer": b"not numbers"})
    page.click("button.main")
    page.wait_for_selector("#error:visible")
    assert "Error" not in page.inner_text("#error")


def test_the_law_and_the_bounds_follow_their_sliders(visit):
    page = visit.open("law")
    first = page.inner_text("#law-answer")
    page.focus("#length")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#law-answer")).not_to_have_text(first)
    assert "n=91" in page.url
    drawn = page.inner_text("#head-words")
    page.click("#redraw")
    expect(page.locator("#head-words")).not_to_have_text(drawn)
    page = visit.open("bounds")
    first = page.inner_text("#words")
    page.focus("#error-wanted")
    page.keyboard.press("Home")
    expect(page.locator("#words")).not_to_have_text(first)
    assert "error=0.01" in page.url


#: A map keeps its width when another appears beside it, unless the page resizes it.
AS_WIDE_AS_THEIR_PLACES = """() => ["first", "second"].every((name) => {
  const plot = document.querySelector(`#map-${name} .plot`);
  const drawn = plot.querySelector("svg.main-svg").getBoundingClientRect().width;
  return Math.abs(drawn - plot.getBoundingClientRect().width) <= 1;
})"""


def test_a_click_shows_a_head_and_two_models_stand_side_by_side(visit):
    page = visit.open("models")
    page.select_option("#second", index=2)
    page.wait_for_selector("#map-second .plot svg", state="attached")
    page.wait_for_function(AS_WIDE_AS_THEIR_PLACES)
    box = page.locator("#map-second .plot .nsewdrag").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    expect(page.locator("#head-title")).to_have_text(re.compile(r"head 3$"))
    assert page.input_value("#which") == page.input_value("#second")
    page.select_option("#head", "0")
    expect(page.locator("#head-title")).to_have_text(re.compile(r"head 0$"))


def test_maps_have_the_colours_of_the_report_and_whole_ticks(visit):
    """Ranks 106 and 107 had opposite colours, and the only layer had ticks -0.5 and 0.5."""
    page = visit.open("models")
    page.wait_for_selector("#map-first .plot svg", state="attached")
    drawn = page.evaluate(
        "(({ zmin, zmax }) => [zmin, zmax])(document.querySelector('#map-first .plot').data[0])"
    )
    assert drawn == [0, 16]
    ticks = page.locator("#map-first .ytick text, #map-first .xtick text").all_text_contents()
    assert ticks and all(tick.isdecimal() for tick in ticks)
    page.select_option("#column", "query_key_rank")
    page.wait_for_function("document.querySelector('#map-first .plot').data[0].zmax < 16")


def test_the_address_of_a_filtered_list_opens_it_again(visit):
    page = visit.open("exhibits")
    page.select_option("#verdict", "differs")
    page.select_option("#folder", "rank2026")
    assert "verdict=differs" in page.url and "folder=rank2026" in page.url
    shown = page.inner_text("#count")
    page = visit.open("exhibits?" + page.url.partition("?")[2])
    expect(page.locator("#count")).to_have_text(shown)
    page.select_option("#verdict", "")
    page.select_option("#folder", "")
    assert page.url.endswith("/exhibits")
    page = visit.open("exhibits?verdict=unheard")
    assert page.input_value("#verdict") == ""


def test_exhibits_are_filtered_sorted_opened_and_saved(visit):
    page = visit.open("exhibits")
    page.wait_for_selector("#totals a")
    every = page.locator("#list tbody tr").count()
    page.select_option("#source", "ours")
    assert 0 < page.locator("#list tbody tr").count() < every
    page.select_option("#source", "")
    page.select_option("#order", "worst")
    expect(page.locator("#list tbody tr").first.locator(".bar")).to_have_text(re.compile("^0 of"))
    page.locator("#list tbody tr a").first.click()
    page.wait_for_selector("#one:visible")
    assert page.locator("#cells tbody tr").count() > 0
    with page.expect_download() as saved:
        page.click("#rows")
    assert saved.value.suggested_filename.endswith(".csv")


def test_a_run_is_stopped_and_offered_again_after_the_server_was_killed(chromium, tmp_path):
    place = tmp_path / "results.db"
    with Server(place) as first, Visit(chromium, first) as found:
        page = found.open("exhibits#beyond/init_scale", ready="#list tbody tr")
        page.click("[data-run=laptop]")
        expect(page.locator("#running")).to_contain_text(re.compile(r"[1-9]\d* of \d+"))
        page.click("#running button:has-text('Stop')")
        page.click("#running button:has-text('Resume')")
        page.wait_for_selector("#running button:has-text('Stop')")
        first.kill()
        expect(page.locator("#running")).to_contain_text("does not answer")
    with Server(place, first.port) as again, Visit(chromium, again) as found:
        page = found.open("exhibits", ready="#running button:has-text('Resume')")
        assert "missing of" in page.inner_text("#running")
        page.click("#running button:has-text('Forget')")
        page.wait_for_selector("#runs", state="hidden")


def test_a_finished_run_shows_what_it_gave(chromium, tmp_path):
    with Server(tmp_path / "results.db") as server, Visit(chromium, server) as found:
        page = found.open("exhibits#beyond/init_scale", ready="#list tbody tr")
        page.click("[data-run=miniature]")
        page.click("#running button:has-text('Show what it gave')")
        page.wait_for_url(re.compile("#beyond/init_scale@miniature$"))
        expect(page.locator("#one")).to_contain_text("miniature")
        assert found.faults == []


def test_a_dropped_config_is_answered_and_the_page_follows_the_theme(visit):
    page = visit.open("ask")
    page.evaluate(
        """(text) => {
          const given = new DataTransfer();
          given.items.add(new File([text], "config.json", { type: "application/json" }));
          const drop = document.getElementById("drop");
          drop.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true }));
        }""",
        json.dumps(CONFIG),
    )
    page.click("button.main")
    expect(page.locator("#dropped")).to_have_text("config.json: answered below.")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


def test_the_law_page_of_the_site_works_without_a_server(chromium, tmp_path, monkeypatch):
    site = module_of(ROOT / "docs" / "make_law_page.py")
    monkeypatch.setattr(site, "OUT", tmp_path)
    monkeypatch.setattr(site, "MOST_TOKENS", 64)
    site.main()
    page, faults = chromium.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((tmp_path / "index.html").as_uri())
    expect(page.locator("#law-answer")).to_have_text("Head dimension 31 reaches 90% of the barrier")
    expect(page.locator("#head-words")).to_contain_text("of its 64 columns")
    page.focus("#length")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#law-answer")).to_have_text("Head dimension 38 reaches 90% of the barrier")
    page.close()
    assert faults == []


def test_the_gallery_shows_every_figure():
    page = module_of(ROOT / "docs" / "make_gallery.py").gallery()
    assert (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8") == page
    assert page.count("<img") == len(list((ROOT / "docs/figures/exhibits").glob("*.svg")))


def module_of(path):
    """A script of the documentation, imported."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
