"""Bundles of recorded programs, for tests in one process."""

from pathlib import Path

from tilework.aot.precompile import precompile
from tilework.process.events import LISTENERS
from tilework.runtime.bundle.bundle_file import write_bundle
from tilework.runtime.bundle.serving import parse_target
from tilework.runtime.recording.manifest import read_manifest


def stop_recording() -> None:
    """Remove the recorders that TILEWORK_RECORD has installed in this process."""
    LISTENERS[:] = [one for one in LISTENERS if type(one).__name__ != "ProgramRecorder"]


def bundle_of(manifest: Path) -> Path:
    """Compile a record for CPUs into a bundle beside it; return the bundle's path."""
    made = precompile(read_manifest([str(manifest)]), [parse_target("cpu")], workers=1)
    assert not made.failures and not made.notes, (made.failures, made.notes)
    write_bundle(manifest.with_suffix(".tilebundle"), made.contents)
    return manifest.with_suffix(".tilebundle")
