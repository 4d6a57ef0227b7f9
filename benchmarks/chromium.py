"""A browser for testing and timing pages: Chromium, controlled by its DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
PATIENCE = 60.0
#: the protocol uses file descriptors 3 and 4
BEGIN = """
import fcntl, os, sys
ours = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for own, asked in zip(ours, (3, 4)):
    os.dup2(own, asked)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """A running browser with one page; use it as a context.

    Attributes
    ----------
    problems : list of str
        Errors and warnings of the console, exceptions, and violations of the content security policy.
    requests : list of str
        Addresses that the page requested.
    """

    def __init__(self, folder: Path, width: int = 1280, height: int = 900, *, dark: bool = False):
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.loaded = 0
        self._folder, self._size, self._dark = folder, (width, height), dark
        self._number, self._rest, self._session = 0, b"", None

    def __enter__(self) -> Chromium:
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        arguments = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={self._folder / 'profile'}", "about:blank"]
        command = [sys.executable, "-S", "-c", BEGIN, str(theirs_in), str(theirs_out), *arguments]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._in, selectors.EVENT_READ)
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(*self._size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self._dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._selector.close()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one command of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        own, until = self._number, time.monotonic() + PATIENCE
        while True:
            answer = self._receive(until)
            if answer.get("id") == own:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert self._selector.select(max(0.0, until - time.monotonic())), "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(first)
        self._notice(message.get("method"), message.get("params", {}))
        return message

    def _notice(self, method: str | None, told: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded += 1

    def resize(self, width: int, height: int) -> None:
        """Change the size of the page."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def open(self, address: str) -> None:
        """Open a page and wait until it is drawn."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && !document.querySelector('main')?.ariaBusy")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait until an expression in the page is true, and return it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.value(expression)
            if found:
                return found
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send one event of the mouse: mouseMoved, mousePressed or mouseReleased."""
        pressed = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{**pressed, **more})

    def click(self, x: float, y: float) -> None:
        """Click on a point of the page."""
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def drag(self, *points: tuple[float, float], **more: Any) -> None:
        """Press at the first point, move through the others, and release at the last."""
        self.mouse("mousePressed", *points[0], **more)
        for point in points[1:]:
            self.mouse("mouseMoved", *point, button="left", buttons=1, **more)
        self.mouse("mouseReleased", *points[-1], **more)

    def key(self, key: str, **more: Any) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def middle(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and return the position of its middle."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return box[0], box[1]

    def downloads_to(self, folder: Path) -> None:
        """Save downloads of the page to a folder."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write the visible part, or the whole page, as a PNG file."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
