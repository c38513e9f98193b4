"""Whether a torch tensor is the memory that it was: a line (`layout.py`) says what was in its members, and all of them are compared.

What is read is alive: an object keeps its implementation, and that its storage. The members of an implementation that count lie close together,
and are compared at once.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import Writer, member_of
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import Type, i8, i64, integer, ptr
from tilework.targets.llvm.values import Value


class Tensors:
    """How members are read: their places do not change while a loop goes over tensors."""

    def __init__(self, b: Writer) -> None:
        self.b = b
        names = ("implementation", "storage", "window", "data", "size")
        self.places = {name: b.ptrtoint(b.context(name), i64) for name in names}

    def member(self, holder: Value, name: str, type: Type = i64) -> Value:
        return self.b.load(type, self.b.gep(holder, self.places[name]), align=8)

    def window(self, implementation: Value) -> Value:
        """Keys, element, device, offset and count in one."""
        return self.member(implementation, "window", integer(8 * layout.WINDOW))

    def size(self, storage: Value) -> Value:
        """The size of a storage, and the word behind, with what makes it `checked`."""
        return self.member(storage, "size", integer(128))

    def need(self, line: Value, otherwise: Block) -> None:
        """Go on if a tensor is what its line says."""
        b = self.b

        def same(found: Value, at: int) -> Value:
            b.need(b.icmp("eq", found, b.load(found.type, b.gep(line, at), align=8)), otherwise)
            return found

        object = b.at(line, layout.SEEN_OBJECT, ptr)
        same(b.at(object, layout.TYPE, ptr), layout.SEEN_CLASS)
        implementation = same(self.member(object, "implementation", ptr), layout.SEEN_IMPLEMENTATION)
        storage = same(self.member(implementation, "storage", ptr), layout.SEEN_STORAGE)
        same(self.window(implementation), layout.SEEN_WINDOW)
        same(self.member(storage, "data"), layout.SEEN_DATA)
        same(self.size(storage), layout.SEEN_SIZE)

    def need_plain(self, object: Value, otherwise: Block) -> tuple[Value, Value]:
        """The implementation and the storage of a tensor that can have a line."""
        b = self.b
        b.need(b.icmp("ne", self.places["window"], 0), otherwise)
        implementation = self.member(object, "implementation", ptr)
        b.need(b.is_object(implementation), otherwise)
        storage = self.member(implementation, "storage", ptr)
        b.need(b.is_object(storage), otherwise)
        b.need(b.icmp("eq", member_of(b, storage, "checked", i8), 0), otherwise)
        return implementation, storage

    def write(self, line: Value, object: Value, implementation: Value, storage: Value) -> None:
        """What is in a tensor now."""
        for at, value in (
            (layout.SEEN_OBJECT, object),
            (layout.SEEN_CLASS, self.b.at(object, layout.TYPE, ptr)),
            (layout.SEEN_IMPLEMENTATION, implementation),
            (layout.SEEN_STORAGE, storage),
            (layout.SEEN_WINDOW, self.window(implementation)),
            (layout.SEEN_DATA, self.member(storage, "data")),
            (layout.SEEN_SIZE, self.size(storage)),
        ):
            self.b.store(value, self.b.gep(line, at), align=8)
