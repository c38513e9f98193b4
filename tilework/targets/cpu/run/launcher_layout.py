"""What the machine code of the launcher and the Python that feeds it agree on: places, modes, records.

`launcher.py` and `launcher_guards.py` write the code, with the LLVM text builder; `runtime/launch/native_launch.py` mostly finds
it compiled in the cache, and then needs nothing but this file.
"""

import struct
from typing import NamedTuple

# places in objects, in bytes
TYPE = 8
ARRAY_DATA, ARRAY_DTYPE, ARRAY_FLAGS, WRITEABLE = 16, 56, 64, 0x400

GUARDS = ("guard_constant", "guard_array", "guard_tensor", "guard_fields", "guard_int", "guard_float", "guard_bool")
PLACES = ("implementation", "keys", "element")  # in a torch tensor; the last two in its implementation
# strings, True, classes, and the method definition of `launch`
CONTEXT = ("dtype", "is_cpu", "data_ptr", "true", "int", "str", "tuple", "missing", "definition", *PLACES)

OTHER, MULTIPLE, ONE = 1, 2, 4  # which integers (or addresses) a guard lets through: a set of bits
SAME, SAME_INT, SAME_TEXT, SAME_FLOAT = range(4)  # how constants are compared if they are not the same object

EXPORTS = ("launch", "bind", "launch.context", *GUARDS)

# entry: positions in the tuple
KERNEL, KEYWORDS, WATCHED, CONTENTS, TYPES, EXPECTED, RECORD, FAULT_CALL, SHARED, NAMES, META = range(11)

MOST_SLOTS = 64

# positional, keywords, slots, code, arena, cost, offset of the slots; code of a thread, threads, shared nests, pool, waits, name
HEADER = struct.Struct("<13q")
WORK, THREADS, FORKS, POOL, WAITS, KERNEL_NAME = 56, 64, 72, 80, 88, 96  # places of the last six
MISSING = ...  # what is watched instead of a value: that a dictionary does not have the key
GUARD = struct.Struct("<qqqiiii")  # function, low, high, mode, slot, stored, alignment mask


class Guard(NamedTuple):
    """What one argument must be, and where it goes. `low` and `high` are bounds, or the constant to compare with.

    `mask` are the bits that an address must not have, for arrays on which the kernel does atomics.
    """

    function: int
    low: int = 0
    high: int = 0
    mode: int = 0
    slot: int = 0
    stored: bool = False
    mask: int = 0


class Record(NamedTuple):
    """The numbers of an entry. `cost` is the address of a double, the nanoseconds that one program took last time.

    `work` is the code that each thread of a large grid runs, `forks` whether its nests can be shared (`fork.py`), and
    `pool` the address of words: that of `pool_launch`, or 0 before the pool is there, how many helpers it was asked for, the
    addresses of `pool_poll` and of the word that holds the `name` of the kernel that is running. Programs that may wait for each other (`waits`) run in threads of their own, and never with the GIL.
    """

    positional: int
    keywords: int
    code: int
    arena: int
    cost: int
    work: int
    threads: int
    forks: bool
    pool: int
    waits: bool
    name: int
    guards: tuple[Guard, ...]
    slots: bytes  # of arguments that are not given: the rest is overwritten

    def pack(self) -> bytes:
        """As the machine code reads it."""
        offset = HEADER.size + GUARD.size * len(self.guards)
        numbers = (self.positional, self.keywords, len(self.slots) // 8, self.code, self.arena, self.cost, offset)
        numbers += (self.work, self.threads, int(self.forks), self.pool, int(self.waits), self.name)
        guards = [GUARD.pack(*guard[:5], int(guard.stored), guard.mask) for guard in self.guards]
        return HEADER.pack(*numbers) + b"".join(guards) + self.slots
