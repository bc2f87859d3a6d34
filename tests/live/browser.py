# SPDX-License-Identifier: Apache-2.0
"""A real browser without a screen: https://www.selenium.dev/documentation/webdriver/"""

import json

from selenium import webdriver
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from exporter import SLOWER

__all__ = ["Browser", "Keys"]

DRIVER = "/usr/bin/chromedriver"
LATE_SECONDS = 120 * SLOWER


class Browser:
    """One page of one window, until the end of a `with`. @directory: for what it keeps."""

    def __init__(self, directory):
        options = webdriver.ChromeOptions()
        for argument in (
            *("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"),
            *(f"user-data-dir={directory}", "window-size=1200,900"),
        ):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Driver(DRIVER))
        self.driver.set_page_load_timeout(LATE_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, address):
        self.driver.get(address)

    def wait_until(self, holds):
        WebDriverWait(self.driver, LATE_SECONDS).until(lambda _: holds())

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def rows(self, selector):
        """The texts of the cells of each row of a table."""
        cells = ".//td"
        return [[c.text for c in row.find_elements(By.XPATH, cells)] for row in self.all(selector)]

    def focused(self):
        return self.driver.switch_to.active_element

    def press(self, *keys):
        for key in keys:
            self.focused().send_keys(key)

    def click(self, element):
        ActionChains(self.driver).click(element).perform()

    def hover(self, element):
        ActionChains(self.driver).move_to_element(element).perform()

    def asked(self):
        """The addresses of all that was asked for since the last call."""
        rows = self.driver.get_log("performance")
        events = [json.loads(row["message"])["message"] for row in rows]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Errors and warnings since the last call."""
        return [row["message"] for row in self.driver.get_log("browser")]
