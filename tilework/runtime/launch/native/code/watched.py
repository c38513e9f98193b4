"""The inputs of the Python path beside the arguments of a launch: dictionaries, lists, hooks. An entry is valid while
they are unchanged.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import YES, Writer, routine
from tilework.targets.cpu.run.machine_code import NULL, memory
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value, constant


def need_unchanged(b: Writer, entry: Value, record: Value, otherwise: Block | None = None) -> None:
    """Go on if an entry is still valid. No dictionary is compared while Python reports no change."""
    changes = b.ptrtoint(b.context("changes"), i64)
    seen = b.load(i64, b.gep(record, b.at(record, layout.GROUPS_AT)))
    with b.if_(b.or_(b.icmp("eq", changes, 0), b.icmp("ne", changes, seen))):
        b.need(b.icmp("ne", b.run("as_watched", entry, record), 0), otherwise)
    empties = b.gep(record, b.at(record, layout.EMPTIES_AT))
    with b.loop(0, b.at(record, layout.EMPTY_COUNT)) as index:
        b.need(b.icmp("eq", b.at(b.load(ptr, b.gep(empties, index, ptr)), layout.SIZE), 0), otherwise)
    contents = b.item(entry, layout.CONTENTS)
    with b.loop(0, b.size(contents), 2) as position:
        holder, items = b.item(contents, position), b.item(contents, b.add(position, 1))
        size = b.size(items)
        b.need(b.icmp("eq", b.api("PyObject_Size", holder, result=i64), size), otherwise)
        with b.loop(0, size) as index:
            item = b.item(items, index)
            with b.if_(b.icmp("ne", item, b.context("missing"))):
                b.need(b.icmp("eq", b.api("PyList_GetItem", holder, index), item), otherwise)


@routine("i32 as_watched(ptr entry, ptr record)")
def as_watched(b: Writer, entry: Value, record: Value) -> None:
    """Return 1 if every watched dictionary holds what it held.

    One that has the version in which it was seen last is not looked into. Count and version are read before the
    dictionary: what is called to compare keys may change anything.
    """
    seen = b.gep(record, b.at(record, layout.GROUPS_AT))
    watched, groups = b.item(entry, layout.WATCHED), b.gep(seen, 8)
    changes = b.ptrtoint(b.context("changes"), i64)
    unversioned = b.is_null(b.context("versions"))
    with b.loop(0, b.mul(b.at(record, layout.GROUP_COUNT), layout.GROUP.size), layout.GROUP.size) as place:
        group = b.gep(groups, place)
        holder = b.load(ptr, group)
        version = b.at(holder, layout.DICT_VERSION)
        with b.if_(b.or_(unversioned, b.icmp("ne", version, b.at(group, 8)))):
            with b.loop(b.at(group, 16), b.at(group, 24), 2) as position:
                found = b.api("PyDict_GetItemWithError", holder, b.item(watched, position))
                value = b.item(watched, b.add(position, 1))
                b.need(b.icmp("eq", found, b.select(b.icmp("eq", value, b.context("missing")), NULL, value)))
            b.store(version, b.gep(group, 8))
    b.store(changes, seen)
    b.finish(YES)


@routine("i32 dictionary_changes(i32 event, ptr dictionary, ptr key, ptr value)")
def dictionary_changes(b: Writer, *about: Value) -> None:
    """The callback of Python (since 3.12) before a watched dictionary changes."""
    changes = b.gep(memory("launch.context"), 8 * layout.CONTEXT.index("changes"))
    b.store(b.add(b.load(i64, changes), 1), changes)
    b.finish(constant(i32, 0))
