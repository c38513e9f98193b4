"""Access to the collected data of sessions from the program itself, by phases: `tilework.profiler.data`.

    session = start("train")
    for epoch in range(10):
        train()
        advance_phase(session)                      # launches from now on belong to the next phase
        root, devices = get(session, epoch)         # as the file: {"children": [...], "frame": ..., "metrics": ...}
        clear(session, epoch)                       # is not written at the end

A session has one phase, 0, until the first call of `advance_phase`. `finalize` writes a file for each phase that is
left, ``train.part_3.hatchet``. A session of ``mode="periodic_flushing"`` writes it at once, and forgets the phase.
"""

import json
from typing import Any

from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.sessions import SESSIONS, Session, TreeData, message_pack


def get(session: int | None = 0, phase: int = 0) -> Any:
    """Return the data of a phase, as the JSON of its file, or None if there is no session.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            with proton.scope("forward"):
                pass
            root, devices = proton.data.get(session)
            assert root["children"][0]["frame"]["name"] == "forward"
            proton.finalize()
    """
    found = tree_of(session, phase)
    return None if found is None else json.loads(json.dumps(found))


def get_msgpack(session: int | None = 0, phase: int = 0) -> bytes | None:
    """Return the data of a phase as MessagePack, or None if there is no session.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            with proton.scope("forward"):
                pass
            assert b"forward" in proton.data.get_msgpack(session)
            proton.finalize()
    """
    found = tree_of(session, phase)
    return None if found is None else message_pack(found)


def advance_phase(session: int | None = 0) -> int | None:
    """Begin the next phase, and return its number. Earlier launches belong to the previous phase.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            with proton.scope("forward"):
                pass
            assert proton.data.advance_phase(session) == 1
            assert proton.data.get(session, 1)[0]["children"] == []
            proton.finalize()
    """
    found = settled(session)
    return None if found is None else found.advance()


def is_phase_complete(session: int | None = 0, phase: int = 0) -> bool:
    """Return True if nothing more will be added to a phase.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            with proton.scope("forward"):
                pass
            assert not proton.data.is_phase_complete(session, 0)
            proton.data.advance_phase(session)
            assert proton.data.is_phase_complete(session, 0)
            proton.finalize()
    """
    return session is not None and phase < SESSIONS.get(session).phase


def clear(session: int | None = 0, phase: int = 0, clear_up_to_phase: bool = False) -> None:
    """Clear the data of a phase; with `clear_up_to_phase`, also that of the phases before it. A current phase
    continues.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            with proton.scope("forward"):
                pass
            proton.data.clear(session)
            assert proton.data.get(session)[0]["children"] == []
            proton.finalize()
    """
    if (found := settled(session)) is not None:
        found.clear(0 if clear_up_to_phase else phase, phase)


def settled(session: int | None) -> Session | None:
    """Return a session that has everything that was launched."""
    if session is None:
        return None
    found = SESSIONS.get(session)
    RECORDER.settle()
    return found


def tree_of(session: int | None, phase: int) -> list[dict[str, Any]] | None:
    if (found := settled(session)) is None:
        return None
    if found.kind != "tree":
        raise RuntimeError("Only TreeData is supported for getData() for now: a trace is in its file")
    data: TreeData | None = found.phases.get(phase)
    if data is None:
        raise RuntimeError(f"[PROTON] Phase {phase} has no data.")
    return data.tree()
