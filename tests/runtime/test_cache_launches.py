"""The cache on disk under launches: files, folders, damage, other processes."""

import errno
import json
import multiprocessing
import os
import shutil
import stat
import warnings
from base64 import b32encode
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.launch_kernels import HOPPER, add_one, fill_source
from tilework import knobs
from tilework.compiler import compile
from tilework.runtime.kernel_cache import entry as cache_entry
from tilework.runtime.kernel_cache import file_manager as cache_files
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.launch.native import machine as native_machine
from tilework.runtime.launch.native.code import launcher
from tilework.runtime.tuning.autotuner import Config, autotune
from tilework.targets.base import GPUTarget, find_backend
from tilework.triton import build

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_files, "_warned", set())
    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "outer" / "cache")
        add_one.device_caches.clear()
        yield tmp_path / "outer" / "cache"
    add_one.device_caches.clear()


def launch(**options: Any) -> Any:
    """Compile or load the kernel, run it, and check what it did."""
    add_one.device_caches.clear()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = add_one[(2,)](x, y, 64, **options)
    assert (y == x + 1).all()
    return kernel


def test_every_folder_is_private(cache: Path) -> None:
    launch()
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    assert len(folders) > 1 and {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def entry_files(cache: Path) -> list[Path]:
    (folder,) = {path.parent for path in cache.rglob("add_one.json")}
    return sorted(path for path in folder.iterdir() if path.name != ".tilework")


SPOILERS: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "other bytes": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("how", SPOILERS)
def test_a_damaged_file_of_any_kind_is_built_again(cache: Path, how: str) -> None:
    launch()
    for number in range(len(entry_files(cache))):
        path = entry_files(cache)[number]
        SPOILERS[how](path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            launch()
        assert path.is_file() and path.stat().st_size > 0
        hits: list[bool] = []
        knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])  # noqa: B023
        launch()
        assert hits == [True], path.name


def test_a_damaged_native_launcher_is_built_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native_machine.is_possible():
        return
    small = "define i32 @tilework_small() {\n  ret i32 7\n}\n"  # instead of a text that takes half a second each time
    monkeypatch.setattr(launcher, "launcher_text", lambda clock, items: small)
    first = native_machine.launcher_object.__wrapped__(0, 0).take()
    paths = [p for p in cache.rglob("*") if p.is_file() and native_machine.NAME in p.name]
    assert paths
    for path, how in product(paths, SPOILERS):
        SPOILERS[how](path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert native_machine.launcher_object.__wrapped__(0, 0).take() == first, (path.name, how)


def is_a_file(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.parent.mkdir()
    cache.write_text("")


def below_a_file(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("")


def missing_and_impossible(cache: Path, patch: pytest.MonkeyPatch) -> None:
    knobs.cache.dir = "/proc/nowhere/cache"


def failing(code: int) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(code, os.strerror(code), "somewhere")

    return fail


def read_only(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    if os.geteuid() == 0:  # root may write in spite of the mode
        patch.setattr(cache_entry.os, "mkdir", failing(errno.EROFS))


def full(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.ENOSPC))


def full_at_the_end(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "rename", failing(errno.ENOSPC))


def out_of_quota(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.EDQUOT))


def broken_disk(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.EIO))


def too_many_files(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "mkdir", failing(errno.EMFILE))


UNUSABLE = (
    is_a_file, below_a_file, missing_and_impossible, read_only, full, full_at_the_end, out_of_quota, broken_disk,
    too_many_files
)  # fmt: skip


@pytest.mark.parametrize("spoil", UNUSABLE, ids=lambda spoil: spoil.__name__)
def test_an_unusable_folder_is_one_warning_and_compilation_in_memory(
    cache: Path, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spoil(cache, patch)
        for number in (1, 2):
            launch(num_stages=number)
        launch()
    texts = [str(warning.message) for warning in caught if "cannot use the cache directory" in str(warning.message)]
    assert len(texts) == 1 and str(knobs.cache.dir) in texts[0]


@pytest.mark.parametrize("spoil", [read_only, full, full_at_the_end], ids=lambda spoil: spoil.__name__)
def test_tuning_goes_on_without_a_folder(
    cache: Path, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every configuration is measured, the best is used, and there is one warning."""
    monkeypatch.setattr(knobs.autotuning, "workers", 0)
    requested: list[None] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        requested.append(None)
        return [float(3 - len(requested))] * 3

    tuned = autotune([Config({"BLOCK": size}) for size in (16, 32)], ["n"], do_bench=bench, cache_results=True)(add_one)
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spoil(cache, patch)
        for _ in range(2):
            tuned[lambda meta: (64 // meta["BLOCK"],)](x, y, 64)
    assert len(requested) == 2 and tuned.best_config == Config({"BLOCK": 32}) and (y == x + 1).all()
    assert [str(knobs.cache.dir) in str(warning.message) for warning in caught] == [True]


def test_a_missing_folder_is_made(cache: Path) -> None:
    launch()
    shutil.rmtree(cache.parent)
    launch()
    assert entry_files(cache)


def child_compiles(folder: str, block: int, results: Any) -> None:
    knobs.cache.dir = folder
    add_one.device_caches.clear()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = add_one[(64 // block,)](x, y, 64, BLOCK=block)
    results.put(kernel.metadata.name == "add_one" and bool((y == x + 1).all()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_subprocesses_compile_after_the_parent(cache: Path, method: str) -> None:
    """The second kernel is one that the parent has not compiled."""
    launch()
    context: Any = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    for block in (64, 32):
        child = context.Process(target=child_compiles, args=(str(cache), block, results))
        child.start()
        child.join(180)
        assert child.exitcode == 0
        assert results.get()


LONG = "k" * 400


@pytest.fixture
def hits() -> list[bool]:
    seen: list[bool] = []
    knobs.compilation.listener = lambda **event: seen.append(event["cache_hit"])
    return seen


def test_the_folder_is_the_key_in_base_32() -> None:
    kernel = compile(fill_source(), HOPPER)
    folder = Path(kernel.metadata_group["fill.json"]).parent
    assert folder.name == b32encode(bytes.fromhex(kernel.hash)).decode().rstrip("=") == folder_of(kernel.hash)


def test_stage_files_and_their_group() -> None:
    kernel = compile(fill_source(), HOPPER)
    folder = Path(kernel.metadata_group["fill.json"]).parent
    assert folder.parent == Path(str(knobs.cache.dir)) and {
        "fill.source",
        "fill.ttir",
        "fill.ttgir",
        "fill.json",
    } <= set(kernel.metadata_group)
    for name, path in kernel.metadata_group.items():
        assert Path(path) == folder / name and Path(path).is_file()
    assert (folder / "fill.ttgir").read_text() == kernel.asm["ttgir"]
    assert json.loads((folder / "fill.json").read_text())["hash"] == kernel.hash
    children = json.loads((folder / "__grp__fill.json").read_text())["child_paths"]
    assert set(children) == set(kernel.metadata_group)


def test_long_names_are_cut(tmp_path: Path, hits: list[bool]) -> None:
    """Two kernels that differ behind the cut are two kernels."""
    path = tmp_path / "long.py"
    body = "(p, value, n, BLOCK: tl.constexpr):\n    tl.store(p, value)\n"
    text = "import tilework\nimport tilework.language as tl\n"
    path.write_text(text + "".join(f"@tilework.jit\ndef {LONG}{end}{body}" for end in "ab"))
    scope: dict[str, Any] = {"__name__": "long", "__file__": str(path)}
    exec(compile_text(path), scope)
    for end in "ab":
        kernel = compile(fill_source(scope[LONG + end]), HOPPER)
        assert kernel.name == LONG + end and len(kernel.metadata_group) > 3
        assert all(len(Path(name).stem) <= 150 for name in kernel.metadata_group)
        assert compile(fill_source(scope[LONG + end]), HOPPER).hash == kernel.hash
    assert hits == [False, True] * 2


def compile_text(path: Path) -> Any:
    import builtins

    return builtins.compile(path.read_text(), str(path), "exec")


def test_a_hit_needs_the_json(hits: list[bool]) -> None:
    kernel = compile(fill_source(), HOPPER)
    compile(fill_source(), HOPPER)
    group = Path(kernel.metadata_group["fill.json"]).with_name("__grp__fill.json")
    children = json.loads(group.read_text())["child_paths"]
    group.write_text(
        json.dumps({"child_paths": {name: path for name, path in children.items() if name != "fill.json"}})
    )
    with pytest.warns(UserWarning, match="damaged"):
        compile(fill_source(), HOPPER)
    assert hits == [False, True, False]


def test_the_backend_is_its_architecture_and_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [GPUTarget("cuda", 80, 32), HOPPER, GPUTarget("cpu", "host", 1)]
    assert len({find_backend(target).hash() for target in targets}) == 3
    before = compile(fill_source()).hash
    monkeypatch.setattr(type(find_backend(targets[2])), "hash", lambda self: "another compiler")
    assert compile(fill_source()).hash != before


@pytest.mark.filterwarnings("ignore:TRITON_KERNEL_DUMP wrote no sass")
def test_dumps_are_found_by_the_source_alone(tmp_path: Path) -> None:
    knobs.cache.dump_dir = str(tmp_path / "dump")
    knobs.compilation.dump_ir = True
    for warps in (4, 8):
        compile(fill_source(), HOPPER, {"num_warps": warps})
    (folder,) = [path for path in (tmp_path / "dump").iterdir() if not path.name.startswith(".")]
    assert folder.name == folder_of(fill_source().hash()) and (folder / "fill.ttgir").is_file()


def test_helper_modules_are_kept_by_source_and_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the key decide the cache folder."""
    keys: list[str] = []

    class Stop(Exception):
        pass

    def look(key: str) -> Any:
        keys.append(key)
        raise Stop

    monkeypatch.setattr(build, "get_cache_manager", look)

    def key_of(text: str) -> str:
        with pytest.raises(Stop):
            build.compile_module_from_src(text, "helper")
        return keys.pop()

    one = key_of("/* one */")
    assert one == key_of("/* one */") != key_of("/* two */")
    monkeypatch.setattr(build, "platform_key", lambda: "another machine")
    assert key_of("/* one */") != one
