# SPDX-License-Identifier: Apache-2.0
"""The page of flame graphs, in a real browser: what it draws, by mouse and by keys, and what it asks."""

import contextlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

import pytest

from browser import Browser, Keys
from exporter import START_SECONDS, Exporter
from profiles import SIGMAS, sigmas_off, wait_until_read
from services import Service, wait_until
from web import basic, bcrypt

SHARES = {"burn_most": 0.6, "burn_some": 0.3, "burn_least": 0.1}
SECONDS = 5
LEVELS = "service |thread pool |state "
LABEL = re.compile(rf"(?:{LEVELS})?(.*): (\S+) (samples|s|page faults), (\S+) % of all")
# As strict as it may be for a page that has a script, a style and an empty icon.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"
USER = "someone:right@"
# Others than these are of the browser itself, or within the page.
FAR = {"http", "https", "ws", "wss"}
# One browser for all.
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """One with a user, which allows its pages only what they need."""
    config = tmp_path_factory.mktemp("web") / "web.yml"
    config.write_text(
        f"basic_auth_users:\n  someone: {bcrypt('right')}\n"
        f'http_server_config:\n  headers:\n    Content-Security-Policy: "{POLICY}"\n'
    )
    with Exporter("--collector.profiles", f"--web.config.file={config}") as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


class Page:
    """The page of an exporter, and what it has drawn."""

    def __init__(self, browser, exporter, user="", **query):
        self.browser = browser
        self.address = ("127.0.0.1", exporter.port)
        arguments = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
        browser.asked(), browser.complaints()
        browser.open(f"http://{user}127.0.0.1:{exporter.port}/flame?{arguments}")

    def status(self):
        return self.browser.one("#status").text

    def wait_for_graph(self):
        self.browser.wait_until(lambda: re.search(r" in \d+ s|^No profile", self.status()))
        assert " in " in self.status()

    def boxes(self, name):
        return [box for box in self.browser.all("#graph .box") if name_of(box) == name]

    def width(self, name):
        """Of its boxes together, as a share of the page's."""
        whole = self.browser.one("#graph").rect["width"]
        return sum(box.rect["width"] for box in self.boxes(name)) / whole

    def expect_shares(self):
        (whole,) = self.boxes("all")
        samples = amount_of(whole)
        assert samples > 0
        for name, share in SHARES.items():
            counted = sum(amount_of(box) for box in self.boxes(name))
            assert abs(sigmas_off(counted, samples, share)) < SIGMAS, (name, counted, samples)
            assert abs(self.width(name) - counted / samples) < 0.01

    def expect_asked_no_other(self):
        asked = [urlsplit(url) for url in self.browser.asked()]
        addresses = {(url.hostname, url.port) for url in asked if url.scheme in FAR}
        assert addresses == {self.address}
        assert not self.browser.complaints()


def label_of(box):
    label = box.get_attribute("aria-label")
    return LABEL.fullmatch(label).groups()


def name_of(box):
    return label_of(box)[0]


def amount_of(box):
    return float(label_of(box)[1])


@pytest.fixture
def burner(profiling, start):
    service = start(Service, "burner", rest_us=500)
    profiling.workload_of(service.port)
    wait_until_read(profiling, service.name)
    return service


def test_boxes_are_as_wide_as_their_share_and_are_moved_into(browser, profiling, burner):
    page = Page(browser, profiling, workload=burner.name, type="profile", seconds=SECONDS)
    page.wait_for_graph()
    page.expect_shares()
    for name in "all", burner.name, "worker", "slice_burn":
        assert page.width(name) > 0.9, name
    functions = browser.rows("#functions tbody tr")
    assert [row[2] for row in functions][0] == "spin"  # it burns for the three
    browser.click(page.boxes("burn_some")[0])
    assert page.width("burn_some") > 0.99
    assert not page.boxes("burn_most")
    browser.press(Keys.ESCAPE)
    assert page.boxes("burn_most")
    browser.hover(page.boxes("burn_most")[0])
    assert browser.one("#place").text.startswith("burn_most: ")
    page.expect_asked_no_other()


def test_what_is_sought_is_marked_and_its_share_told(browser, profiling, burner):
    page = Page(browser, profiling, workload=burner.name, type="profile", seconds=2)
    page.wait_for_graph()
    browser.one("#find").send_keys("burn_mo")
    found = browser.all("#graph .found")
    assert {name_of(box) for box in found} == {"burn_most"}
    share = float(re.match(r"(\S+) % of all is in", browser.one("#share").text)[1])
    assert abs(share / 100 - page.width("burn_most")) < 0.01
    browser.click(next(b for b in browser.all("#functions button") if b.text == "spin"))
    assert {name_of(box) for box in browser.all("#graph .found")} == {"spin"}


def test_keys_alone_ask_and_move(browser, profiling, burner):
    page = Page(browser, profiling)
    browser.wait_until(lambda: burner.name in browser.one("select[name=workload]").text)
    browser.press(Keys.TAB)
    for _ in browser.all("select[name=workload] option"):
        if browser.focused().get_attribute("value") != burner.name:
            browser.press(Keys.ARROW_DOWN)
    assert browser.focused().get_attribute("value") == burner.name
    browser.press(Keys.TAB, Keys.TAB, Keys.BACKSPACE * 2 + f"{SECONDS}", Keys.ENTER)
    page.wait_for_graph()
    assert f" in {SECONDS} s" in page.status()
    for _ in range(4):  # the button, what is sought, and the graph
        browser.press(Keys.TAB)
        if "box" in browser.focused().get_attribute("class"):
            break
    assert name_of(browser.focused()) == "all"
    while name_of(browser.focused()) != "slice_burn":
        before = browser.focused()
        browser.press(Keys.ARROW_DOWN)
        assert browser.focused() != before
    browser.press(Keys.ARROW_DOWN)
    assert name_of(browser.focused()) == "burn_most"
    browser.press(Keys.ARROW_RIGHT)
    assert name_of(browser.focused()) == "burn_some"
    browser.press(Keys.ENTER)
    assert name_of(browser.focused()) == "burn_some"
    assert page.width("burn_some") > 0.99
    browser.press(Keys.ARROW_UP)
    assert name_of(browser.focused()) == "slice_burn"
    browser.press(Keys.ESCAPE, Keys.HOME)
    assert name_of(browser.focused()) == "all"


@contextlib.contextmanager
def waiting(waiter):
    """It waits without a break meanwhile, as a browser may be slow: yields a list of how long, in s."""
    over, waited = threading.Event(), []

    def run():
        while not over.is_set():
            waited.append(waiter.ask("run 10")["long_wait_ns"] / 1e9)

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        try:
            yield waited
        finally:
            over.set()
    running.result()


def test_waits_are_told_in_seconds_by_one_that_wants_a_password(browser, guarded, start):
    waiter = start(Service, "waiter", threads=2)
    secret = basic("someone", "right")

    def targets():
        return guarded.request("/debug/targets", **secret)[2]

    def is_read():
        path = f"/debug/pprof/mutex?seconds=1&format=folded&workload={waiter.name}"
        with waiting(waiter):
            return ";long_wait;" in guarded.request(path, **secret)[2]

    wait_until(lambda: waiter.name in targets(), START_SECONDS, "it has no name")
    wait_until(is_read, START_SECONDS, "its code is not read")
    with waiting(waiter) as waited:
        page = Page(browser, guarded, USER, workload=waiter.name, type="mutex", seconds=SECONDS)
        page.wait_for_graph()
    print(page.status(), [box.get_attribute("aria-label") for box in browser.all("#graph .box")])
    drawn = sum(amount_of(box) for box in page.boxes("long_wait"))
    assert {label_of(box)[2] for box in page.boxes("long_wait")} == {"s"}
    assert 0 < drawn <= 1.05 * sum(waited)
    page.expect_asked_no_other()


def test_names_are_text(browser, profiling, start):
    burner = start(Service, "burner", rest_us=500, name="<img src=x>")
    profiling.workload_of(burner.port)
    wait_until_read(profiling, quote(burner.name))
    page = Page(browser, profiling, workload=burner.name, type="profile", seconds=1)
    page.wait_for_graph()
    assert len(page.boxes(burner.name)) == 2  # the service, and its thread pool
    assert not browser.all("img")
    page.expect_asked_no_other()


def test_what_is_refused_says_why(browser, profiling):
    page = Page(browser, profiling, workload="none of these", type="profile", seconds=1)
    browser.wait_until(lambda: page.status().startswith("No profile"))
    assert page.status() == "No profile: no workload has this name: / lists them"
    assert not browser.all("#graph .box")
