"""A headless Chromium driven over the W3C WebDriver protocol, by the standard library alone."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,800",
]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Browser:
    """One browser window with a fresh profile."""

    def __init__(self, profile: Path, *flags: str) -> None:
        assert DRIVER is not None
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self._wait_until_ready()
            options = {
                "binary": CHROMIUM,
                "args": [*_FLAGS, f"--user-data-dir={profile}", *flags],
            }
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.url += f"/session/{answer['sessionId']}"
        except BaseException:
            self.driver.kill()
            raise

    def _wait_until_ready(self) -> None:
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        raise TimeoutError("chromedriver did not start")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as response:
            return json.loads(response.read())["value"]

    def open(self, address: str) -> None:
        self._call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script: str, *arguments: Any) -> None:
        """Until a script returns true."""
        for _ in range(100):
            if self.run(script, *arguments):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def type(self, selector: str, text: str) -> None:
        """Keys for an element; U+E007 is Enter, U+E00C Escape, U+E012 to U+E015 the arrows."""
        query = {"using": "css selector", "value": selector}
        element = self._call("POST", "/element", query)[_ELEMENT]
        self._call("POST", f"/element/{element}/value", {"text": text})

    def pointer(self, *steps: dict[str, Any]) -> None:
        actions = {"type": "pointer", "id": "mouse", "actions": list(steps)}
        self._call("POST", "/actions", {"actions": [actions]})

    def move_to(self, x: float, y: float) -> None:
        self.pointer({"type": "pointerMove", "x": round(x), "y": round(y)})

    def click(self) -> None:
        self.pointer({"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def drag(self, x: float, y: float, dx: int, dy: int) -> None:
        self.pointer(
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": dx // 2, "y": dy // 2, "origin": "pointer"},
            {"type": "pointerMove", "x": dx - dx // 2, "y": dy - dy // 2, "origin": "pointer"},
            {"type": "pointerUp", "button": 0},
        )

    def wheel(self, x: float, y: float, delta: int) -> None:
        step = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": delta}
        self._call(
            "POST", "/actions", {"actions": [{"type": "wheel", "id": "w", "actions": [step]}]}
        )

    def complaints(self) -> list[str]:
        """What the page wrote to the console."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self) -> bytes:
        return base64.b64decode(self._call("GET", "/screenshot"))

    def close(self) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
