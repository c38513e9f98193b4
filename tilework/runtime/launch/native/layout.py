"""The interface between the machine code of the launcher and the Python that feeds it: offsets, modes, records.

`code/` writes the machine code; a process that finds it compiled in the cache needs nothing but this file.

A record begins with a header (`HEADER`) and the fields of the device (`HOST`, `GPU`); then come the guards, the index
of the argument that each of them checks, the watched dictionaries, and the slots. Guards read objects and write slots,
all in one frame: first the slots that the kernel takes, then, from `OBJECTS` on, the arguments and the objects that
guards found inside of them.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

# offsets in objects, in bytes
TYPE, SIZE, LIST_ITEMS, BYTES_START = 8, 16, 24, 40
DIGIT = 24  # of an int that has one
# how ints say how many they have: up to Python 3.11, since then
DIGITS_UNKNOWN, DIGITS_BY_SIZE, DIGITS_BY_TAG = range(3)
ARRAY_DATA, ARRAY_DTYPE, ARRAY_FLAGS, WRITEABLE = 16, 56, 64, 0x400
ARRAY_RANK, ARRAY_SIZES, ARRAY_STRIDES = 24, 32, 40
# of a DLTensor, in bytes
DL_DATA, DL_KIND, DL_DEVICE, DL_ELEMENT, DL_OFFSET = 0, 8, 12, 20, 40
DL_WORDS = 6
DICT_VERSION = 24  # in Pythons where dictionaries have one
DICTIONARY = -24  # of an object, in Pythons that keep it before it

GUARDS = (
    "guard_constant", "guard_equal", "guard_array", "guard_tensor", "guard_dlpack", "guard_small", "guard_interface",
    "guard_converted", "guard_int", "guard_float", "guard_bool", "guard_tuple", "guard_known", "guard_members",
    "guard_sizes", "guard_remember", "guard_map", "guard_hidden_maps", "guard_apart",
)  # fmt: skip
ROUTINES = ("run_host", "run_gpu", "ready_gpu")  # what a device adds
NAMES_READ = (
    *("dtype", "device", "data_ptr", "is_neg", "untyped_storage", "nbytes"),
    *("__cuda_array_interface__", "typestr", "data", "stream"),
)
# strings, classes, and the method definitions of `launch` and `launch_bound`
CONTEXT = (
    *(f"name_{name}" for name in NAMES_READ),
    "int",
    "str",
    "tuple",
    "float",
    "none",
    "missing",
    "key_error",
    "definition",
    "versions",
    "digits",
    "changes",  # of watched dictionaries so far, or 0 where Python does not report them
    "log",
    # classes of arrays and tensors, once an entry has one, and the function that describes tensors
    *("array", "tensor", "parameter", "describe"),
    "dictionary",  # where an object has its dictionary, in bytes, or 0
)

OTHER, MULTIPLE, ONE = 1, 2, 4  # which integers (or addresses) a guard lets through: a set of bits
SAME, SAME_INT, SAME_TEXT, SAME_FLOAT = range(4)  # how constants are compared if they are not the same object

EXPORTS = ("launch", "launch_bound", "launch_key", "bind", "dictionary_changes", "launch.context", *GUARDS, *ROUTINES)

# the list of a kernel: what to call when nothing fits, the index of its entries if they are many (else None), or the
# entries
PYTHON, INDEX, FIRST_ENTRY = range(3)
# an index: positions in the tuple
INDEX_TABLE, INDEX_FACTS, INDEX_NAMED = range(3)

# entry: positions in the tuple
KERNEL, KEYWORDS, WATCHED, CONTENTS, RECORD, FAULT_CALL, DEVICE_CALL, NAMES, META, KEPT = range(10)

SLOT, MOST_SLOTS = 8, 256
OBJECTS = MOST_SLOTS
MOST_OBJECTS = 128
# in 64-bit words; behind it the three sizes of the grid, the first of them -1 while it is not known, and the fields of
# the log that a device fills in
FRAME = MOST_SLOTS + MOST_OBJECTS
RAN = ("start", "took", "events")  # nanoseconds, and the address of two events of a GPU, or 0
STARTED_AT, TOOK_AT, EVENTS_AT = range(24, 48, 8)  # behind the frame
FRAME_WORDS = FRAME + 3 + len(RAN)

# positional, keywords, slots, their offset, guards, their offset, groups, their offset, run, ready, empty lists, their
# offset, the identity in the log, the hash of the integers, how many there are, the offset of their slots, that of the
# guards' arguments
HEADER = struct.Struct("<12qqQqqq")
POSITIONAL, KEYWORD_COUNT, SLOT_COUNT, SLOTS_AT, GUARD_COUNT, GUARDS_AT, GROUP_COUNT, GROUPS_AT = range(0, 64, 8)
RUN, READY, EMPTY_COUNT, EMPTIES_AT, IDENTITY, MARK, INTEGER_COUNT, INTEGERS_AT, ROOTS_AT = range(64, 136, 8)
# code, arena, cost; code of a thread, threads, shared nests, pool, waits, name
HOST = struct.Struct("<9q")
CODE, ARENA, COST, WORK, THREADS, FORKS, POOL, WAITS, KERNEL_NAME = range(136, 208, 8)
# addresses of the functions that return the context, the context, that set it (0: it has to be the thread's), and that
# launch; function, blocks of a program, the function that returns the stream (DLPack's `current_work_stream`), the kind
# of device and the device, how the driver is called, parameters; the configuration follows, and how many bytes of the
# slots are before each parameter, at the end before those of the scratch memory
GPU = struct.Struct("<11q56s")
GET_CONTEXT, DEVICE_CONTEXT, SET_CONTEXT, LAUNCH_CALL, FUNCTION, CLUSTER = range(136, 184, 8)
GET_STREAM, STREAM_KIND, DEVICE_INDEX, BY_VALUES, PARAMETER_COUNT, CONFIG = range(184, 232, 8)
CONFIG_BYTES, CONFIG_SHARED, CONFIG_STREAM = 56, 24, 32
PARAMETERS = CONFIG + CONFIG_BYTES
LARGEST_X, LARGEST_YZ = 2**31 - 1, 65535  # blocks of a grid

# maps of descriptors that were used before: lines of the address (0: empty), sizes, strides and 128 bytes
MAP_WORDS, MAP_LINES, MOST_SIZES = 16, 8, 10
MAP_LINE = 1 + MOST_SIZES + MAP_WORDS  # in 64-bit words

# descriptors that were seen before: lines of the version of the dictionary (0: empty), base, then sizes, strides and
# block if they are lists (0: they cannot change), the items of these three, and the values of the first two
KNOWN_LINES = 8
KNOWN_BASE, KNOWN_LISTS, KNOWN_ITEMS, KNOWN_VALUES = 8, 16, 40, 48
KNOWN_LINE = KNOWN_VALUES // 8 + MOST_SIZES  # in 64-bit words

# hidden maps that were made before: lines of the result (0: empty), the values that they are made from and the grid,
# and the maps; then the slots of these values, which of their bits count, and for each map the slot of the base that is
# added to its address
MOST_INPUTS, HIDDEN_LINES = 64, 64
JUSTIFIED, REFUSED = 1, 2
AS_FOUND = -1

# a bound launch: positions in the tuple
STATE, BY_PYTHON, BOUND_NAMES, BOUND_VALUES, BOUND_KEYWORDS = range(5)

# the log of launches, while there is a listener: the address of the next line, the end of the buffer, which launches
# fit an entry, the Python function that empties the buffer, the function that records an event, the address of the next
# two events, and the end of these
LOG = struct.Struct("<7q")
LOG_NEXT, LOG_END, LOG_FITS, LOG_FULL, LOG_RECORD, LOG_EVENTS, LOG_EVENTS_END = range(0, 56, 8)
ALL_FIT, SAME_INTEGERS_FIT, NONE_FIT = range(3)
LINE_FIELDS = ("identity", "mark", "called", "returned", "thread", "x", "y", "z", *RAN)
LINE = 8 * len(LINE_FIELDS)
ANY_INTEGERS = 0  # the mark of an entry that all launches fit
MARK_START, MARK_FACTOR, ALL_BITS = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1

MISSING = ...  # what is watched instead of a value: that a dictionary does not have the key
# function, low, high, mode, slot, stored, alignment mask, source, other; addresses of the class and of what is expected
GUARD = struct.Struct("<qqqiiiiiiqq")
GUARD_SOURCE, GUARD_OTHER, GUARD_CLASS, GUARD_EXPECTED = 40, 44, 48, 56


# a watched dictionary, its version when it was seen last, first and last of its keys and values; in front of the
# first is the count of changes at which all were found unchanged
GROUP = struct.Struct("<4q")


class Guard(NamedTuple):
    """The condition on one object, and the slot of its value. `low` and `high` are bounds, or the constant to compare
    with.

    `mask` are the bits that an address must not have, for arrays on which the kernel does atomics. `source` is the
    object of the frame that is looked at; a guard that finds objects inside of it stores them from `slot` on. For
    memory `other` is the slot of the first byte that a kernel may reach through it and of the end, or 0.
    """

    function: int
    low: int = 0
    high: int = 0
    mode: int = 0
    slot: int = 0
    stored: int = 0
    mask: int = 0
    source: int = 0
    other: int = 0
    cls: int = 0
    expected: int = 0


class Record(NamedTuple):
    """The binary part of an entry. `run` and `ready` are addresses of routines, `device` the device's own fields."""

    positional: int
    keywords: int
    run: int
    ready: int
    device: bytes
    guards: tuple[Guard, ...]
    slots: bytes  # of arguments that are not given: the rest is overwritten
    groups: tuple[tuple[int, int, int, int], ...] = ()
    empties: tuple[int, ...] = ()  # addresses of lists that must be empty
    identity: int = 0  # in the log
    mark: int = 0
    integers: tuple[int, ...] = ()  # slots of integers
    roots: tuple[int, ...] = ()  # for each guard the position of the argument that it is about; -1: of all

    def pack(self) -> bytearray:
        """As the machine code reads it."""
        guards_at = HEADER.size + len(self.device)
        roots_at = guards_at + GUARD.size * len(self.guards)
        groups_at = roots_at + 8 * len(self.roots)
        empties_at = groups_at + 8 + GROUP.size * len(self.groups)
        integers_at = empties_at + 8 * len(self.empties)
        slots_at = integers_at + 8 * len(self.integers)
        counts = (len(self.slots) // 8, slots_at, len(self.guards), guards_at, len(self.groups), groups_at)
        header = HEADER.pack(
            self.positional, self.keywords, *counts, self.run, self.ready, len(self.empties), empties_at, self.identity,
            self.mark, len(self.integers), integers_at, roots_at,
        )  # fmt: skip
        guards = [GUARD.pack(*guard) for guard in self.guards]
        groups = [struct.pack("<q", 0), *(GROUP.pack(*group) for group in self.groups)]
        lists = struct.pack(f"<{len(self.empties) + len(self.integers)}q", *self.empties, *self.integers)
        roots = struct.pack(f"<{len(self.roots)}q", *self.roots)
        parts = (header, self.device, *guards, roots, *groups, lists, self.slots)
        return bytearray(b"".join((*parts, bytes(3 * SLOT))))  # slots are copied by fours


def mark_of(grid: tuple[int, int, int], integers: Iterable[int]) -> int:
    """Hash the grid and the integers of a launch, as the machine code does, to recognise launches that do the same
    work.
    """
    mark = MARK_START
    for integer in (*grid, *integers):
        mark = (mark ^ (integer & ALL_BITS)) * MARK_FACTOR & ALL_BITS
    return mark
