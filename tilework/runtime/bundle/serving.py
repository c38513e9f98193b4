"""Launches served from bundles: `tilework.load`, TILEWORK_BUNDLE.

    bundle = tilework.load("app.tilebundle")        launches of the program's kernels are served from it from now on
    bundle.kernels, bundle.targets, bundle.digest   what is in it

A launch that finds no code in memory looks here before the disk cache and the compiler, which are not loaded. The key
of a specialisation contains no paths (`recording/specialization_record.py`), so a program may have moved; a kernel
whose text has changed since is not found.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from tilework import knobs
from tilework.errors import BundleError
from tilework.process.events import BUNDLES, LISTENERS, notify
from tilework.process.forks import cached_property, held_at_fork
from tilework.process.metrics import count
from tilework.runtime.bundle import bundle_targets
from tilework.runtime.bundle.bundle_file import BundleFile, Entry
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.devices.host.own_code import PROVIDERS, layout_key
from tilework.runtime.recording.specialization_record import SpecializationRecord, is_kernel
from tilework.target import GPUTarget

LOCK = held_at_fork(threading.RLock())
OPENED: dict[tuple[str, str | None, str | None], "Bundle"] = {}  # those of TILEWORK_BUNDLE
MANIFEST, TUNINGS = "manifest", "tunings"  # names of blobs
PLAIN = "plain_key"  # in the metadata of a kernel with launch preconditions: the key of the one without


class Bundle:
    """An open bundle. It serves launches until it is closed; kernels that were loaded by then remain loaded."""

    def __init__(self, file: BundleFile) -> None:
        self.file = file
        self._fitting: dict[GPUTarget, list[tuple[int, str]]] = {}

    def __repr__(self) -> str:
        return f"<bundle {self.path}: {len(self.kernels)} kernels for {', '.join(self.targets)}>"

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def digest(self) -> str:
        """The digest that `load(path, digest=...)` and TILEWORK_BUNDLE_DIGEST take."""
        return self.file.digest

    @property
    def targets(self) -> list[str]:
        return [bundle_targets.named(target) for target in self.file.targets]

    @property
    def kernels(self) -> list[str]:
        """The kernels, as ``module:name``."""
        return [kernel["name"] for kernel in self.file.kernels]

    def close(self) -> None:
        """Serve no more launches."""
        with LOCK:
            BUNDLES[:] = [one for one in BUNDLES if one is not self]

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> None:
        """Verify all sections, used or not."""
        self.file.verify()

    def fitting(self, device: GPUTarget) -> list[tuple[int, str]]:
        """The indices of the targets that a device can run."""
        if device not in self._fitting:
            self._fitting[device] = bundle_targets.fitting(self.file.targets, device)
        return self._fitting[device]

    def files(self, keys: Iterator[str] | list[str], device: GPUTarget) -> dict[str, bytes] | None:
        """The verified files of the first of these keys that there is, for the best target; None if there is none."""
        keys = list(keys)
        for index, load in self.fitting(device):
            for key in keys:
                if (entry := self.file.find(index, key)) is not None:
                    return self.loadable(entry, load)
        return None

    def loadable(self, entry: Entry, load: str) -> dict[str, bytes]:
        files = self.file.files(entry)
        if "cubin" in files and (knobs.runtime.device or "").startswith("emulator"):
            load = bundle_targets.PTX
            if load not in files:
                raise BundleError(f"{self.path} has no PTX, which the emulator executes: compile it with --ptx")
        if load == bundle_targets.BINARY:
            return files
        return {**files, "json": json.dumps({**json.loads(files["json"]), "binary_ext": load}).encode()}

    @cached_property
    def manifest(self) -> list[dict[str, Any]]:
        """The recorded specialisations, read when a message needs them."""
        return json.loads(self.file.blob(MANIFEST) or b"[]")

    @cached_property
    def tunings(self) -> list[dict[str, Any]]:
        return json.loads(self.file.blob(TUNINGS) or b"[]")


def load(path: str | os.PathLike[str], digest: str | None = None, key: str | bytes | None = None) -> Bundle:
    """Serve launches from a file of `tilework precompile`, from now on: docs/serving.md has the story.

    The file is verified: its index here, and the code of a kernel when a launch needs it. With `digest` it must be that
    very file, with `key` (or TILEWORK_BUNDLE_KEY) it must be signed with it. BundleError says what is wrong with a
    file. Of several bundles the one that was loaded last is searched first. The returned bundle can be closed, or used
    in a `with`.

    Example:
        import json, pathlib, tempfile
        from tilework.runtime.bundle.bundle_file import Contents, write_bundle

        with tempfile.TemporaryDirectory() as folder:
            digest = write_bundle(file := pathlib.Path(folder, "empty.tilebundle"), Contents([], [], []))
            with tilework.load(file, digest=digest) as bundle:
                assert bundle.kernels == [] and bundle.digest == digest
    """
    secret = knobs.runtime.bundle_key if key is None else key
    file = BundleFile.open(path, digest, secret.encode() if isinstance(secret, str) else secret)
    made = file.facts.get("layout") or ""
    if made and (own := layout_key()) and made != own:
        raise BundleError(
            f"{file.path} was compiled by another build of tilework {file.version}: compile it again, `tilework"
            " precompile`"
        )
    with LOCK:
        BUNDLES.insert(0, bundle := Bundle(file))
        if own_object not in PROVIDERS:
            PROVIDERS.append(own_object)
    return bundle


def own_object(name: str) -> bytes | None:
    """Machine code of the runtime itself, of the first bundle that has it."""
    return next((data for bundle in tuple(BUNDLES) if (data := bundle.file.blob(name)) is not None), None)


def begin() -> None:
    """Start what TILEWORK_RECORD and TILEWORK_BUNDLE request."""
    if knobs.runtime.record:
        from tilework.runtime.recording.manifest import record_into  # lazily: few programs record

        record_into(knobs.runtime.record)
    paths = knobs.runtime.bundle
    with LOCK:
        for path in (paths or "").split(os.pathsep)[::-1] if paths else ():
            setting = path, knobs.runtime.bundle_digest, knobs.runtime.bundle_key
            if path and setting not in OPENED:
                OPENED[setting] = load(path, knobs.runtime.bundle_digest)


def kernel_for(specialization: Any, target: GPUTarget, backend: Any) -> Any:
    """The compiled kernel of a specialisation from a bundle; None if there is none."""
    begin()
    if not BUNDLES:
        return None
    record = SpecializationRecord(specialization, backend)
    for bundle in tuple(BUNDLES):
        if (files := bundle.files(record.usable_keys(), target)) is not None:
            count("cache_hits", kernel=specialization.fn._fn_name, cache="bundle")
            kernel = compiled(specialization.source(), files)
            if LISTENERS:
                report_hit(kernel, specialization, target, backend, record.environment)
            return kernel
    return None


def check_missing(specialization: Any, target: GPUTarget, backend: Any) -> None:
    """An error about what no bundle has, unless the compiler may make it."""
    if not BUNDLES:
        return
    check_target(target)
    from tilework.runtime.bundle.missing import missing_kernel  # lazily: only what is missing needs it

    missing_kernel(SpecializationRecord(specialization, backend), tuple(BUNDLES))


def report_hit(
    kernel: Any, specialization: Any, target: GPUTarget, backend: Any, environment: Mapping[str, str]
) -> None:
    """As of a kernel that the disk cache had. The compiler's version is a part of it."""
    from tilework.runtime.compile.compiler_presence import has_compiler  # lazily: few listen

    if not has_compiler():
        return
    options = backend.parse_options(specialization.options)
    facts = {"source": kernel.src, "target": target, "backend": backend, "options": options, "environment": environment}
    notify("compiled", kernel=kernel, hit=True, seconds=0.0, **facts)


def compiled(source: Any, files: dict[str, bytes]) -> Any:
    """A kernel of verified files."""
    return CompiledKernel(source, {}, json.loads(files["json"])["hash"], files)


def plain_kernel(source: Any, metadata: Any) -> Any:
    """The kernel without the launch preconditions of a kernel from a bundle; None if it is not from one."""
    key = getattr(metadata, PLAIN, None)
    found = (bundle.files([key], metadata.target) for bundle in tuple(BUNDLES)) if key is not None else ()
    files = next((files for files in found if files is not None), None)
    return None if files is None else compiled(source, files)


def check_target(target: GPUTarget) -> None:
    """An error if no bundle has code for a device."""
    if any(bundle.fitting(target) for bundle in tuple(BUNDLES)):
        return
    has = "; ".join(
        f"{bundle.path} has code for {bundle_targets.explained(bundle.file.targets, target)}"
        for bundle in tuple(BUNDLES)
    )
    raise BundleError(f"no bundle has code for {target}: {has}. Compile it with `--target {wanted(target)}` too")


def wanted(target: GPUTarget) -> str:
    """The target to compile for, on whatever machine; of CPUs the highest level that this one reaches."""
    levels = [GPUTarget("cpu", level, 1) for level in bundle_targets.LEVELS] if target.backend == "cpu" else []
    fitting = bundle_targets.fitting([bundle_targets.described(level) for level in levels], target)
    return str(levels[fitting[0][0]]) if fitting else str(target)


def choice_for(tuner: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Any:
    """The configuration that was recorded for these arguments, best on a device of this kind; None if it may be
    tuned."""
    # lazily: few programs tune
    from tilework.language.portable_key import portable_key
    from tilework.runtime.recording.constants_json import Unwritable, constant_to_json
    from tilework.runtime.tuning.config import argument_key, device_part, fixed, is_reproducible

    begin()
    fn = tuner.fn
    while not is_kernel(fn) and hasattr(fn, "fn"):
        fn = fn.fn
    if not BUNDLES or not is_kernel(fn):
        return None
    key = argument_key(tuner.keys, tuner.arg_names, {**named, **kwargs})
    try:
        texts = [constant_to_json(value) for value in key]
    except Unwritable:
        texts = None
    device, wanted = str(*device_part()), (portable_key(fn), texts, is_reproducible(tuner.fn, kwargs))
    rows = (row for bundle in tuple(BUNDLES) for row in bundle.tunings)
    found = [row for row in rows if (row["source"], row["tuning"], bool(row["reproducible"])) == wanted]
    bits = fixed(tuner.configs[0])  # what may not differ where the same bits are promised
    for row in sorted(found, key=lambda row: row["device"] != device):
        for config in tuner.configs if not wanted[2] else (one for one in tuner.configs if fixed(one) == bits):
            if {name: constant_to_json(value) for name, value in config.all_kwargs().items()} == row["config"]:
                return config
    from tilework.runtime.bundle.missing import missing_choice  # lazily: only what is missing needs it

    missing_choice(tuner, fn, key, found, tuple(BUNDLES))
    return None
