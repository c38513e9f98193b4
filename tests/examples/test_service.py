"""The example service, from a bundle, where the compiler's packages cannot be imported."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.service import client, kernels, shapes
from tests.runtime.without_compiler import ROOT, environment_without_compiler, run_without_compiler
from tilework import knobs
from tilework.aot.precompile import precompile
from tilework.process.events import LISTENERS
from tilework.runtime.bundle.bundle_file import write_bundle
from tilework.runtime.bundle.serving import parse_target
from tilework.runtime.recording.manifest import read_manifest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bundles for CPUs are loaded on Linux")
EMULATED = """
import sys
import numpy as np
import tilework
from examples.service.kernels import softmax
from examples.service.shapes import numpy_softmax
from tilework.runtime.devices.active_driver import driver

tilework.load("service.tilebundle")
x = np.random.default_rng(0).standard_normal((3, 512), dtype=np.float32)
assert np.allclose(softmax(x), numpy_softmax(x), atol=1e-5)
assert driver.active.get_current_target().backend == "cuda"
assert not {"xdsl", "llvmlite", "tilework.frontend"} & set(sys.modules)
"""
REQUESTS = os.environ.get("SERVICE_REQUESTS", "160")


def recorded_bundle(folder: Path, target: str = "cpu", block: int | None = None) -> Path:
    """The bundle of the service's shapes, or of those with blocks of one size."""
    manifest, listeners = folder / "service.jsonl", list(LISTENERS)
    for known in (kernels.softmax_rows, kernels.matmul_tiles):  # as in a new process
        known.device_caches.clear()
        known.__dict__.pop("_bind_grid", None)
    with knobs.runtime.scope():
        knobs.runtime.record = str(manifest)
        knobs.runtime.device = "native"
        shapes.main()
    LISTENERS[:] = listeners
    records = [record for record in read_manifest([str(manifest)]) if block in (None, record["constants"].get("BLOCK"))]
    made = precompile(records, [parse_target(target)], workers=1, with_ptx=True)
    assert not made.failures and not made.notes, (made.failures, made.notes)
    write_bundle(folder / "service.tilebundle", made.contents)
    return folder / "service.tilebundle"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("service")
    command = [sys.executable, "-m", "examples.service.server", "--bundle", str(recorded_bundle(folder)), "--port", "0"]
    settings = {**environment_without_compiler(folder), "TILEWORK_NO_JIT": "1"}
    with subprocess.Popen(command, env=settings, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = [server.stdout.readline(), server.stdout.readline()]
        try:
            yield int(said[1].rpartition(":")[2])
        finally:
            server.terminate()


def test_it_serves_and_refuses(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    code = client.main(["--port", str(port), "--clients", "8", "--requests", REQUESTS])
    said = capsys.readouterr().out
    assert code == 0, said
    assert f"{REQUESTS} requests of 8 clients" in said and ", 0 wrong" in said
    assert "`columns` = 1024 is a multiple of 16, and 1000 was not" in said, said


def test_what_is_queried_wrongly_is_said(port: int) -> None:
    connection = client.HTTPConnection("127.0.0.1", port, timeout=60)
    matrix = client.bytes_of([client.np.zeros((2, 3), client.np.float32)])
    for path, body, status, words in (
        ("/softmax", b"nothing", 400, ""),
        ("/softmax", matrix + matrix, 400, "more than 1 arrays"),
        ("/matmul", matrix + matrix, 400, "(2, 3) and (2, 3)"),
        ("/nothing", matrix, 404, "/softmax"),
    ):
        got = client.ask(connection, "POST", path, body)
        assert got[0] == status and words in got[1].decode(), (path, got)
    status, said = client.ask(connection, "GET", "/metrics")
    assert status == 200 and 'cache="bundle"' in said.decode() and "tilework_compiles{" not in said.decode(), said


def test_code_for_a_gpu_is_served_without_xdsl_and_llvm(tmp_path: Path) -> None:
    recorded_bundle(tmp_path, "cuda:90", block=512)
    done = run_without_compiler(tmp_path, EMULATED, {"TILEWORK_DEVICE": "emulator"}, allowed="ml_dtypes")
    assert done.returncode == 0, done.stderr
