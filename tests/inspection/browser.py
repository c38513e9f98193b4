"""A headless Chromium, driven over its debugging pipe: nothing to install but the browser.

    with Browser(tmp_path) as browser:
        browser.open(page.as_uri())
        browser.evaluate("document.title")
        browser.press("/")

Messages are JSON, each with a zero byte behind it, on the file descriptors 3 (to the browser) and 4 (from it).
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
    " --disable-extensions --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
    # one process for all pages, which are left for good
    " --renderer-process-limit=1 --in-process-gpu --disable-site-isolation-trials"
    " --disable-features=BackForwardCache,RenderDocument,SpareRendererForSitePerProcess"
).split()
PATIENCE = 60  # seconds for an answer: machines are busy


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


class Gone(AssertionError):
    """The browser has ended by itself."""


class Browser:
    """One page of one browser, in a window of `size`."""

    def __init__(self, folder: Path, size: tuple[int, int] = (1600, 950)) -> None:
        self.folder = folder
        try:
            target = self.start()
        except Gone:  # it was seen to crash at its start
            self.end()
            target = self.start()
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.resize(*size)

    def start(self) -> str:
        """Start the process; return the id of its page."""
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        program = find_chromium()
        assert program is not None, "there is no Chromium"
        command = [program, *OPTIONS, f"--user-data-dir={self.folder / 'profile'}", "about:blank"]
        # the child's descriptors 3 and 4; ours may have these numbers, so they move away first
        moved = [os.dup(theirs_in), os.dup(theirs_out)]
        shell = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "bash", *map(str, moved), *command],
            pass_fds=moved,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for descriptor in (theirs_in, theirs_out, *moved):
            os.close(descriptor)
        self.buffer, self.number, self.session = b"", 0, None
        self.problems: list[str] = []
        return self.send("Target.createTarget", url="about:blank")["targetId"]

    def end(self) -> None:
        """End all processes of the browser, before their folder goes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(AssertionError, OSError):
            self.session = None
            self.send("Browser.close")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.end()

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result. Errors that the page reports are added to `problems`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        try:
            os.write(self.out, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise Gone("the browser is gone") from None
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.problems.append(details.get("exception", {}).get("description") or details["text"])
            elif answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.problems.append(answer["params"]["entry"]["text"])

    def receive(self) -> Any:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self.into, 1 << 20)
            if not data:
                raise Gone("the browser is gone")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address: str) -> None:
        """Load a page, and wait until it says that it is ready."""
        self.send("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready !== undefined")

    def evaluate(self, expression: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"it does not become true: {condition}; {self.problems}"
            time.sleep(0.02)

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Set the colour scheme of the system: light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def index(self, selector: str) -> tuple[float, float]:
        """The middle of an element, of at most 400 pixels of it: lines are long."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " const b = e.getBoundingClientRect(); return [b.left + Math.min(b.width, 400) / 2, "
            "b.top + b.height / 2]; })()"
        )
        assert box is not None, f"there is no {selector}"
        return box[0], box[1]

    def point(self, selector: str) -> None:
        """Move the mouse there."""
        x, y = self.index(selector)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        x, y = self.index(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key by its name, or by what it types."""
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
