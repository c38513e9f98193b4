"""Launches served from bundles: `tilework.load`, TILEWORK_BUNDLE.

    bundle = tilework.load("app.tilebundle")        launches of the program's kernels are served from it from now on
    bundle.kernels, bundle.targets, bundle.digest   what is in it

A launch that finds no code in memory looks here before the disk cache and the compiler, which are not loaded. The key
of a specialisation contains no paths (`recording/specialization_record.py`), so a program may have moved; a kernel
whose text has changed since is not found.
"""

import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import BundleError
from tilework.process.events import BUNDLES, LISTENERS, notify
from tilework.process.forks import cached_property, held_at_fork
from tilework.process.metrics import count
from tilework.runtime.bundle.bundle_file import BundleFile, Counts, Entry
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.devices.host.own_code import PROVIDERS, layout_key
from tilework.runtime.recording.specialization_record import SpecializationRecord, is_kernel
from tilework.target import GPUTarget, UnknownTarget
from tilework.targets.cpu.target import processor_facts

if TYPE_CHECKING:
    from tilework.runtime.bundle.trees import ServedTree
    from tilework.runtime.recording.tuning_family import TunedLaunch
    from tilework.runtime.signing import Key

LOCK = held_at_fork(threading.RLock())
OPENED: dict[tuple[str | None, ...], "Bundle"] = {}  # those of TILEWORK_BUNDLE
MANIFEST, TUNINGS, TREES = "manifest", "tunings", "trees"  # names of blobs
PLAIN = "plain_key"  # in the metadata of a kernel with launch preconditions: the key of the one without


class Bundle:
    """An open bundle. It serves launches until it is closed; kernels that were loaded by then remain loaded."""

    def __init__(self, file: BundleFile) -> None:
        self.file = file
        self._fitting: dict[GPUTarget, list[tuple[int, str]]] = {}

    def __repr__(self) -> str:
        counts = Counts.of(self.file.kernels, self.file.entries())
        return f"<bundle {self.path}: {counts} for {', '.join(self.targets)}>"

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def digest(self) -> str:
        """The digest that `load(path, digest=...)` and TILEWORK_BUNDLE_DIGEST take."""
        return self.file.digest

    @property
    def targets(self) -> list[str]:
        return [target_name(target) for target in self.file.targets]

    @property
    def kernels(self) -> list[str]:
        """The kernels, as ``module:name``."""
        return list(dict.fromkeys(kernel["name"] for kernel in self.file.kernels))

    def close(self) -> None:
        """Serve no more launches."""
        with LOCK:
            BUNDLES[:] = [one for one in BUNDLES if one is not self]

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> None:
        """Verify all sections, used or not, and read the decision trees."""
        self.file.verify()
        _ = self.trees

    def fitting(self, device: GPUTarget) -> list[tuple[int, str]]:
        """The indices of the targets that a device can run."""
        if device not in self._fitting:
            self._fitting[device] = fitting_targets(self.file.targets, device)
        return self._fitting[device]

    def files(self, keys: Iterator[str] | list[str], device: GPUTarget) -> dict[str, bytes] | None:
        """Return the verified files of the first of these keys in the bundle, for the best target; None without one."""
        keys = list(keys)
        for index, load in self.fitting(device):
            for key in keys:
                if (entry := self.file.find(index, key)) is not None:
                    return self.loadable(entry, load)
        return None

    def loadable(self, entry: Entry, load: str) -> dict[str, bytes]:
        files = self.file.files(entry)
        if "cubin" in files and (knobs.runtime.device or "").startswith("emulator"):
            load = PTX
            if load not in files:
                raise BundleError(f"{self.path} has no PTX, which the emulator executes: compile it with --ptx")
        if load == BINARY:
            return files
        return {**files, "json": json.dumps({**json.loads(files["json"]), "binary_ext": load}).encode()}

    @cached_property
    def manifest(self) -> list[dict[str, Any]]:
        """The recorded specialisations, read when a message needs them."""
        return json.loads(self.file.blob(MANIFEST) or b"[]")

    @cached_property
    def tunings(self) -> list[dict[str, Any]]:
        return json.loads(self.file.blob(TUNINGS) or b"[]")

    @cached_property
    def trees(self) -> "list[ServedTree]":
        """The decision trees of autotuned kernels."""
        from tilework.runtime.bundle.trees import read_trees  # lazily: few programs tune

        return read_trees(self.file.blob(TREES), self.path)


def load(path: str | os.PathLike[str], digest: str | None = None, key: str | bytes | None = None) -> Bundle:
    """Serve launches from a file written by `tilework precompile`, from now on. See docs/serving.md.

    The file is verified: its index immediately, and the code of each kernel when a launch needs it. With `digest`, the
    file must have that digest; with `key` (or TILEWORK_BUNDLE_KEY, TILEWORK_BUNDLE_KEY_FILE), it must be signed with
    that key. BundleError says what is wrong with a file. If several bundles are loaded, the last one is searched first.
    The returned bundle can be closed, or used in a `with` statement.

    Example:
        import json, pathlib, tempfile
        from tilework.runtime.bundle.bundle_file import Contents, write_bundle

        with tempfile.TemporaryDirectory() as folder:
            digest = write_bundle(file := pathlib.Path(folder, "empty.tilebundle"), Contents([], [], []))
            with tilework.load(file, digest=digest) as bundle:
                assert bundle.kernels == [] and bundle.digest == digest
    """
    file = BundleFile.open(path, digest, bundle_key() if key is None else key)
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


def bundle_key() -> "Key | None":
    """Return the key in TILEWORK_BUNDLE_KEY or TILEWORK_BUNDLE_KEY_FILE; BundleError if what they contain is none."""
    text, file = knobs.runtime.bundle_key, knobs.runtime.bundle_key_file
    if not text and not file:
        return None
    from tilework.runtime.signing import read_key  # lazily: few bundles are signed

    try:
        return read_key(text, file, "TILEWORK_BUNDLE_KEY")
    except RuntimeError as error:
        raise BundleError(str(error)) from error


def own_object(name: str) -> bytes | None:
    """Return machine code of the runtime itself, from the first bundle that has it."""
    return next((data for bundle in tuple(BUNDLES) if (data := bundle.file.blob(name)) is not None), None)


def begin() -> None:
    """Start what TILEWORK_RECORD and TILEWORK_BUNDLE request."""
    if knobs.runtime.record:
        from tilework.runtime.recording.manifest import record_into  # lazily: few programs record

        record_into(knobs.runtime.record)
    paths = knobs.runtime.bundle
    with LOCK:
        for path in (paths or "").split(os.pathsep)[::-1] if paths else ():
            setting = path, knobs.runtime.bundle_digest, knobs.runtime.bundle_key, knobs.runtime.bundle_key_file
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
    """Raise an error about a specialisation that no bundle has, unless it may be compiled."""
    if not BUNDLES:
        return
    check_target(target)
    from tilework.runtime.bundle.missing import missing_kernel  # lazily: only what is missing needs it

    missing_kernel(SpecializationRecord(specialization, backend), tuple(BUNDLES))


def report_hit(
    kernel: Any, specialization: Any, target: GPUTarget, backend: Any, environment: Mapping[str, str]
) -> None:
    """Report a kernel from a bundle as one from the disk cache is reported; the report has the compiler's version."""
    from tilework.runtime.compile.compiler_presence import has_compiler  # lazily: few listen

    if not has_compiler():
        return
    options = backend.parse_options(specialization.options)
    facts = {"source": kernel.src, "target": target, "backend": backend, "options": options, "environment": environment}
    notify("compiled", kernel=kernel, hit=True, seconds=0.0, **facts)


def compiled(source: Any, files: dict[str, bytes]) -> Any:
    """Return a kernel of verified files, with the locations of this process as far as they can be replaced."""
    if not source.is_here(files):
        from tilework.runtime.compile.locations import moved  # lazily: most files stay where they are

        files = moved(files, source.locations())
    return CompiledKernel(source, {}, json.loads(files["json"])["hash"], files)


def plain_kernel(source: Any, metadata: Any) -> Any:
    """The kernel without the launch preconditions of a kernel from a bundle; None if it is not from one."""
    key = getattr(metadata, PLAIN, None)
    found = (bundle.files([key], metadata.target) for bundle in tuple(BUNDLES)) if key is not None else ()
    files = next((files for files in found if files is not None), None)
    return None if files is None else compiled(source, files)


def check_target(target: GPUTarget) -> None:
    """Raise an error if no bundle has code for a device."""
    if any(bundle.fitting(target) for bundle in tuple(BUNDLES)):
        return
    has = "; ".join(
        f"{bundle.path} has code for {targets_text(bundle.file.targets, target)}" for bundle in tuple(BUNDLES)
    )
    add = f"`--target {target_to_compile(target)}`"
    raise BundleError(f"no bundle has code for {target}: {has}. Compile it with {add} too")


def target_to_compile(target: GPUTarget) -> str:
    """Return the target to compile for, in a form for other machines: of a CPU, the highest level that it reaches."""
    levels = [GPUTarget("cpu", level, 1) for level in LEVELS] if target.backend == "cpu" else []
    fitting = fitting_targets([target_facts(level) for level in levels], target)
    return str(levels[fitting[0][0]]) if fitting else str(target)


def choice_for(tuner: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the configuration that was recorded for these arguments, else the answer of a decision tree; None if the
    launch may be tuned."""
    # lazily: few programs tune
    from tilework.runtime.recording.constants_json import Unwritable
    from tilework.runtime.recording.tuning_family import TunedLaunch
    from tilework.runtime.tuning.config import argument_key, fixed, is_reproducible, prune

    begin()
    fn = tuner.fn
    while not is_kernel(fn) and hasattr(fn, "fn"):
        fn = fn.fn
    if not BUNDLES or not is_kernel(fn):
        return None
    given, bundles, texts = {**named, **kwargs}, tuple(BUNDLES), list[str]()
    reproducible, configs = is_reproducible(tuner.fn, kwargs), tuner.configs
    if reproducible:  # only what gives the same bits
        configs = [one for one in configs if fixed(one) == fixed(configs[0])]
    with suppress(Unwritable):
        launch = TunedLaunch.of(tuner, given, reproducible)
        texts = recorded_settings(bundles, fn.portable_key, launch)
        if (config := config_among(configs, texts)) is not None:
            return config
        texts += (answers := answered_settings(bundles, fn.portable_key, launch))
        if answers:
            configs, _ = prune(configs, named, kwargs, tuner.early_config_prune, None, 1.0)
            if (config := config_among(configs, answers)) is not None:
                return config
    from tilework.runtime.bundle.missing import missing_choice  # lazily: only what is missing needs it

    missing_choice(tuner, fn, argument_key(tuner.keys, tuner.arg_names, given), texts, bundles)
    return None


def recorded_settings(bundles: Sequence[Bundle], source: str, launch: "TunedLaunch") -> list[str]:
    """Return the configurations that were recorded for a tuning key, as JSON texts, first those of this kind of
    device."""
    from tilework.runtime.tuning.config import device_part  # lazily: few programs tune

    wanted = source, launch.key, launch.family["reproducible"]
    rows = (row for bundle in bundles for row in bundle.tunings)
    found = [row for row in rows if (row["source"], row["tuning"], bool(row["reproducible"])) == wanted]
    device = str(*device_part())
    found.sort(key=lambda row: row["device"] != device)
    return [json.dumps(row["config"], sort_keys=True) for row in found]


def answered_settings(bundles: Sequence[Bundle], source: str, launch: "TunedLaunch") -> list[str]:
    """Return the answers of the decision trees, as JSON texts, in the same order; none while `tilework tune`
    measures."""
    from tilework.runtime.tuning.config import device_part  # lazily: few programs tune

    if knobs.autotuning.save:
        return []
    found = [tree for bundle in bundles for tree in bundle.trees if tree.fits(source, launch.family)]
    device = str(*device_part())
    found.sort(key=lambda tree: tree.device != device)
    return [tree.tree.answer(launch.shape) for tree in found]


def config_among(configs: Sequence[Any], texts: Sequence[str]) -> Any:
    """Return the configuration that the first matching text describes; None if no text matches."""
    # lazily: few programs tune
    from tilework.runtime.recording.constants_json import Unwritable, settings_to_json

    own: dict[str, Any] = {}
    for config in configs:
        with suppress(Unwritable):
            own.setdefault(json.dumps(settings_to_json(config), sort_keys=True), config)
    return next((own[text] for text in texts if text in own), None)


# ---- choose the code of a bundle for a device, the best first
#
#     target_facts(GPUTarget("cuda", 80, 32))             {"backend": "cuda", "arch": 80, "warp_size": 32}
#     fitting_targets(targets, GPUTarget("cuda", 86, 32)) [(0, "cubin")]: 8.0 runs on 8.6, 9.0 would not
#
# | target | runs on |
# |---|---|
# | `cuda` | the same capability; up to 8.9 also later ones of the same generation; as PTX, if any, all later ones |
# | `hip` | the same architecture |
# | `cpu` | machines of the same kind and system that have all instructions that the code may use |
#
# The instructions of a CPU are read from the system, not from LLVM, which need not be installed.


BINARY = ""  # the file that the metadata names
PTX = "ptx"
ONLY_ITSELF = 90  # from this capability on code is for one architecture alone (sm_90a)

V2 = tuple("cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3".split())
V3 = (*V2, *"abm avx avx2 bmi1 bmi2 f16c fma movbe".split())
V4 = (*V3, *"avx512bw avx512cd avx512dq avx512f avx512vl".split())
# what code may use beyond these, if it was compiled for the machine it was compiled on
MORE = tuple(
    "adx aes avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512ifma"
    " avx512vbmi avx_vnni fma4 fsgsbase gfni pclmulqdq rdrand rdseed sha_ni sse4a tbm vaes vpclmulqdq xop".split()
)
ARM = tuple(
    "aes asimd asimddp asimdfhm asimdhp asimdrdm atomics bf16 crc32 dcpop fcma flagm flagm2 fp fphp frint"
    " i8mm ilrcpc jscvt lrcpc pmull sb sha1 sha2 sha3 sha512 ssbs sve sve2 svebf16 svei8mm uscat".split()
)
FOR_DOTS = frozenset("avx512_bf16 avx512_vnni avx_vnni bf16 i8mm svebf16 svei8mm".split())  # see TILEWORK_CPU_DOTS
LEVELS = {"x86-64": (), "x86-64-v2": V2, "x86-64-v3": V3, "x86-64-v4": V4, "armv8-a": ("asimd", "fp")}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def target_facts(target: GPUTarget, has_ptx: bool = False) -> dict[str, Any]:
    """Return a target in the form of the index of a bundle."""
    found: dict[str, Any] = {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}
    if target.backend == "cpu":
        level = LEVELS.get(str(target.arch))
        arm = str(target.arch).startswith("arm")
        machine = this_machine() if level is None else "aarch64" if arm else "x86_64"
        has = instructions()
        own = sorted(has.intersection(ARM if machine == "aarch64" else (*V4, *MORE)))
        return {
            **found,
            "machine": machine,
            "system": sys.platform,
            "instructions": own if level is None else sorted(level),
        }
    return {**found, "ptx": True} if has_ptx else found


def parse_target(text: str) -> GPUTarget:
    """``cuda:90``, ``hip:gfx942``, ``cpu:x86-64-v3``; ``cpu`` is the kind of CPU that this machine has."""
    target = GPUTarget.parse(text)
    if target.backend != "cpu" or target.arch in LEVELS:
        return target
    if target.arch not in ("host", "native"):
        known = ", ".join(f"cpu:{name}" for name in LEVELS)
        raise UnknownTarget(f"target {text!r}: no such CPU; known are cpu, {known}")
    return GPUTarget("cpu", "native", 1)


def this_machine() -> str:
    machine = platform.machine().lower()
    return MACHINES.get(machine, machine)


def instructions() -> frozenset[str]:
    """The instruction sets of this CPU that code may use, by the system's names."""
    return had_instructions() if knobs.runtime.cpu_dots else had_instructions() - FOR_DOTS


@cache
def had_instructions() -> frozenset[str]:
    facts = processor_facts()
    return frozenset((facts.get("flags") or facts.get("Features") or "").split())


def fitting_targets(targets: Sequence[Mapping[str, Any]], device: GPUTarget) -> list[tuple[int, str]]:
    """Return (index of a target, file to load) for each target that a device can run."""
    found: list[tuple[tuple[int, ...], int, str]] = []
    for index, target in enumerate(targets):
        rule = RULES.get(device.backend, same_arch)
        if target.get("backend") == device.backend and (fit := rule(target, device)) is not None:
            order, file = fit
            found.append(((*order, -index), index, file))
    return [(index, file) for _, index, file in sorted(found, reverse=True)]


Fit = tuple[tuple[int, ...], str] | None  # how well, and with which file


def same_arch(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    return ((0,), BINARY) if target.get("arch") == device.arch else None


def cuda_fit(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    arch, own = target.get("arch"), device.arch
    if not isinstance(arch, int) or not isinstance(own, int) or arch > own:
        return None
    if arch == own or (arch // 10 == own // 10 and arch < ONLY_ITSELF):
        return (1, arch), BINARY
    return ((0, arch), PTX) if target.get("ptx") and arch < ONLY_ITSELF else None


def cpu_fit(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    return ((len(target.get("instructions", ())),), BINARY) if cpu_mismatch(target) is None else None


def cpu_mismatch(target: Mapping[str, Any]) -> str | None:
    """Return the reason that code for a CPU cannot run here; None if it can."""
    if target.get("machine") != this_machine():
        return f"it is for {target.get('machine')}, and this is {this_machine()}"
    if target.get("system") != sys.platform:
        return f"it is for {target.get('system')}, and this is {sys.platform}"
    missing = set(target.get("instructions", ())) - instructions()
    why = "" if knobs.runtime.cpu_dots else ", or TILEWORK_CPU_DOTS=0 forbids it"
    return f"this CPU does not have {', '.join(sorted(missing))}{why}" if missing else None


RULES: dict[str, Callable[[Mapping[str, Any], GPUTarget], Fit]] = {"cuda": cuda_fit, "cpu": cpu_fit}


def target_name(target: Mapping[str, Any]) -> str:
    """Return a target in the form of `--target`: ``cuda:90``, ``cpu:x86-64-v3``."""
    arch = target.get("arch")
    return str(target.get("backend")) if arch in ("host", "native") else f"{target.get('backend')}:{arch}"


def targets_text(targets: Sequence[Mapping[str, Any]], device: GPUTarget) -> str:
    """Describe the targets of a bundle, and the reasons that they do not fit this device."""
    texts = []
    for target in targets:
        reason = cpu_mismatch(target) if target.get("backend") == device.backend == "cpu" else None
        texts.append(target_name(target) + (f" ({reason})" if reason else ""))
    return ", ".join(texts) or "nothing"
