"""The device that runs kernels: the GPU if there is one that we can drive, else the host.

    >>> driver.active.get_current_target()
    GPUTarget(backend='cpu', arch='host', warp_size=1)

The choice is made at first use, so importing tilework touches no device. TILEWORK_DEVICE decides it: ``cuda`` requests
an NVIDIA GPU and ``hip`` one of AMD's, which is an error if none can be used, ``native`` and ``evaluator`` the host,
``emulator`` an emulated GPU; so does TRITON_DEFAULT_BACKEND, with the names of Triton's backends. Without them, or with
``auto``, a GPU is active if one can be used, and the arguments of a launch choose: arrays and tensors of the host go to
the CPU, all else to the GPU. Programs that say `import triton` have that choice with ``auto`` only. `set_active`
overrides all that.
"""

import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.language import target_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tilework.runtime.devices.driver import Driver

GROUP = "tilework.drivers"
EMULATOR = "emulator"
AUTO = "auto"
BACKEND_NAMES = {"cuda": "nvidia", "hip": "amd"}  # by the name of the driver, those of Triton's packages
HOST_NAMES = {"native": "cpu", "evaluator": "cpu"}  # values of TILEWORK_DEVICE for the host, and the name of its driver


def registered_drivers(is_likely: Callable[[str], bool] = lambda name: True) -> "list[type[Driver]]":
    """Return the driver classes of all packages, ours only if they are likely; the host comes last. The emulator is
    active only on request.
    """
    from tilework.process.plugins import OWN, plugins  # lazily: a program that imports tilework may launch nothing

    found = (plugin for plugin in plugins(GROUP) if plugin.name != EMULATOR)
    classes = (plugin.load() for plugin in found if plugin.package != OWN or is_likely(plugin.name))
    return sorted(classes, key=lambda cls: -cls.priority)


def likely_drivers() -> "list[type[Driver]]":
    """Return the registered drivers, without those of tilework that would find no device."""
    from tilework.targets.likely_drivers import is_likely  # lazily: as above

    return registered_drivers(is_likely)


def default_driver() -> "Driver":
    """Return the driver that the environment requests, else the only active one; RuntimeError if several are active."""
    requested = knobs.runtime.device if knobs.runtime.device != AUTO else None
    if (requested or "").partition(":")[0] == EMULATOR:
        from tilework.process.plugins import plugins  # lazily: a program that imports tilework may launch nothing

        try:
            return next(plugin for plugin in plugins(GROUP) if plugin.name == EMULATOR).load()()
        except ImportError:
            from tilework.runtime.compile.compiler_presence import require_compiler  # lazily: where parts are missing

            require_compiler()
            raise
    if requested is not None:
        wanted = requested_driver(requested)
        if not wanted.is_active():
            raise RuntimeError(f"TILEWORK_DEVICE={requested} asks for {wanted.why_inactive()}")
        return wanted()
    if backend := knobs.getenv("TRITON_DEFAULT_BACKEND"):
        return named_backend(backend)
    found = [cls for cls in likely_drivers() if cls.is_active()]
    if not found:
        raise RuntimeError(none_active())
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found)
        which = ", ".join(name for cls in found for name in cls.selected_by)
        hint = f" TILEWORK_DEVICE chooses: {which}" if which else ""
        raise RuntimeError(f"{len(found)} active drivers ([{names}]). There should only be one.{hint}")
    return found[0]()


def named_backend(name: str) -> "Driver":
    """Return the driver that a value of TRITON_DEFAULT_BACKEND names."""
    from tilework.process.plugins import plugins  # lazily: a program that imports tilework may launch nothing

    classes = {plugin.name: plugin for plugin in plugins(GROUP) if plugin.name != EMULATOR}
    known = {BACKEND_NAMES.get(own, own): plugin for own, plugin in classes.items()}
    if name not in known:
        raise RuntimeError(f"Unknown backend device '{name}'. Available backends: {list(known)}")
    cls = known[name].load()
    if not cls.is_active():
        raise RuntimeError(f"Backend device '{name}' is not active.")
    return cls()


def none_active() -> str:
    """Return the message for no usable driver: the known drivers, and what each of them lacks."""
    lines = [f"{cls.__module__}.{cls.__qualname__}: {cls.why_inactive()}" for cls in registered_drivers()]
    listed = lines or [
        f"there are none: the table of tilework/process/plugins.py has no {GROUP}, and no package declares any"
    ]
    return "\n  ".join(["0 active drivers. There should be one. These were queried:", *listed])


def requested_driver(requested: str) -> "type[Driver]":
    """Return the driver that a value of TILEWORK_DEVICE names; an error if there is none. If all drivers are ours, the
    others are not loaded.
    """
    from tilework.process.plugins import OWN, plugins  # lazily: a program that imports tilework may launch nothing

    listed = {plugin.name: plugin for plugin in plugins(GROUP)}
    likely = listed.get(HOST_NAMES.get(requested, requested))
    if likely is not None and all(plugin.package == OWN for plugin in listed.values()):
        if requested in (found := likely.load()).selected_by:
            return found
    drivers = registered_drivers()
    if requested not in (names := [name for cls in drivers for name in cls.selected_by]):
        raise ValueError(f"TILEWORK_DEVICE is auto, {', '.join(sorted(names))} or emulator[:ARCH], not {requested!r}")
    return next(cls for cls in drivers if requested in cls.selected_by)


class DriverConfig:
    """The driver in use, made at its first use: `tilework.runtime.driver` is one.

    `active` is the driver that launches use; its `get_current_target()`, `get_current_device()` and
    `get_current_stream(device)` say where kernels run. TILEWORK_DEVICE selects another driver (such as the emulator,
    docs/emulator.md), and `set_active` sets any.

    Example:
        active = tilework.runtime.driver.active
        assert active.get_current_target().backend in ("cpu", "cuda", "hip")
    """

    def __init__(self, make: "Callable[[], Driver]" = default_driver) -> None:
        self._create_driver = make
        self._default: Driver | None = None
        self._active: Driver | None = None
        self._host: Driver | None = None  # where launches on memory of the host go, if that is not `_active`
        self._follows = True
        self._thread = threading.local()

    @property
    def default(self) -> "Driver":
        """The driver that was found on this machine."""
        if self._default is None:
            self._default = self._create_driver()
        return self._default

    @property
    def active(self) -> "Driver":
        """The driver that launches use; inside of a launch the one that its arguments chose."""
        if self._host is not None and (chosen := getattr(self._thread, "driver", None)) is not None:
            return chosen
        if self._active is None:
            self.reset_active()
        return self._active  # pyright: ignore[reportReturnType]

    def set_active(self, driver: Any) -> None:
        """Use `driver` from now on, for everything."""
        self._active, self._host = driver, None

    def reset_active(self) -> None:
        """Go back to the driver that was found."""
        self._active = self.default
        self._host = self.host_beside(self._active)

    # arguments choose

    def only_active(self) -> None:
        """Let arguments choose no device, as in Triton, unless TILEWORK_DEVICE=auto."""
        self._follows = False
        if self._active is not None and self._active is self._default:
            self.reset_active()

    def host_beside(self, found: "Driver") -> "Driver | None":
        """The driver of the host, where arguments choose between it and a GPU."""
        requested = knobs.runtime.device or knobs.getenv("TRITON_DEFAULT_BACKEND")
        if not getattr(found, "has_own_memory", False) or not (requested == AUTO or (not requested and self._follows)):
            return None
        return next((cls() for cls in registered_drivers() if cls.priority == 0), None)

    def check_requested(self) -> None:
        """Refuse an unknown TILEWORK_DEVICE that was set after the choice of a driver."""
        requested = knobs.runtime.device
        if requested is not None and requested != AUTO and requested.partition(":")[0] != EMULATOR:
            requested_driver(requested)

    def elsewhere(
        self, fn: object, args: "Sequence[Any]", kwargs: "Mapping[str, Any]"
    ) -> "AbstractContextManager[Any] | None":
        """The context in which a launch runs where its arguments are; None if it needs none."""
        if self._active is None:
            self.reset_active()
        if self._host is None or getattr(self._thread, "driver", None) is not None:
            return None
        locations = 0
        for arg in (*args, *kwargs.values()):
            locations |= location_of(arg)
            if locations == DEVICE:  # a mix is found when the arguments are checked
                return self.active.on_device_of((*args, *kwargs.values()))
        if locations == HOST | DEVICE:
            self.refuse_mix(fn, args, kwargs)
        return self.using(self._host) if locations == HOST else None

    def refuse_mix(self, fn: Any, args: "Sequence[Any]", kwargs: "Mapping[str, Any]") -> None:
        """Raise an error if the arguments of a launch are on two devices, unless the GPU can reach them all (pinned
        memory).
        """
        if self._host is None:
            return
        named = {**dict(zip(fn.arg_names, args, strict=False)), **kwargs}
        near = [f"{name} ({device_of(arg)})" for name, arg in named.items() if location_of(arg) == DEVICE]
        far = [name for name, arg in named.items() if location_of(arg) & HOST and not self.is_reachable(arg)]
        if near and far:
            raise ValueError(
                f"{fn.__name__} cannot run on two devices: {', '.join(near)} on a GPU, {', '.join(far)} in the memory"
                " of the host, which cannot be accessed from Triton there (cpu tensor?). Copy them to one device, or"
                " pin those of the host"
            ) from None

    def is_reachable(self, arg: object) -> bool:
        try:
            self.active.check_arguments((arg,))
        except ValueError:
            return False
        return True

    @contextmanager
    def using(self, chosen: "Driver | None") -> "Iterator[None]":
        """Inside of the block the driver is `chosen`, in this thread; None: the usual one."""
        before, self._thread.driver = getattr(self._thread, "driver", None), chosen
        try:
            yield
        finally:
            self._thread.driver = before

    def for_target(self, target: Any) -> "Driver":
        """Return the driver that runs code for a target: the host's, if the target is the host and a GPU is active."""
        active, host = self.active, self._host
        if host is None or target.backend != host.get_current_target().backend:
            return active
        return host

    def cache_key(self, active: "Driver") -> Any:
        """The cache key of kernels for a driver's current device: its index, if the driver is the usual one."""
        device = active.get_current_device()
        return device if active is not self._host else (active.get_current_target().backend, device)

    def key_of_kind(self, kind: str) -> Any:
        """Return the `cache_key` of the driver for targets of a kind; KeyError if launches use none."""
        drivers = [self.active, *([self._host] if self._host is not None else ())]
        for each in drivers:
            if each.get_current_target().backend == kind:
                return self.cache_key(each)
        raise KeyError(kind)

    def of_key(self, key: object) -> "Driver | None":
        """The driver that has this `cache_key`, as `using` takes it."""
        return self._host if isinstance(key, tuple) else None


def device_of(arg: object) -> str:
    """The name of an array's device: ``cuda:0``."""
    found = getattr(getattr(arg, "base", arg), "device", None)
    return f"cuda:{found}" if isinstance(found, int) else str(found or "GPU")


def active_target() -> Any:
    """The target of the active driver, or None if no driver can be active."""
    try:
        active = driver.active
    except RuntimeError:
        return None
    return active.get_current_target()


driver = DriverConfig()
target_info.active_target = active_target


# ---- the location of an argument's memory
#
#     >>> location_of(np.zeros(4)), location_of(torch.zeros(4, device="cuda")), location_of(4)
#     (HOST, DEVICE, NOWHERE)
#
# A tuple has the locations of all its items, a descriptor that of its base. Arrays are recognised by their attributes,
# never by importing their library; the rule for a class is found once.


NOWHERE, HOST, DEVICE = 0, 1, 2
DLPACK = {
    1: HOST,
    2: DEVICE,
    3: HOST,
    10: DEVICE,
    11: HOST,
}  # by DLPack's id of a kind of device; 3 and 11 are pinned memory

Rule = Callable[[Any], int]


def location_of(arg: object) -> int:
    """Return the locations of an argument's memory, as a set of bits."""
    rule = RULES.get(type(arg))
    if rule is None:
        rule = RULES[type(arg)] = rule_for(arg)
    return rule(arg)


def nowhere(arg: object) -> int:
    return NOWHERE


def in_tuple(arg: tuple[object, ...]) -> int:
    found = NOWHERE
    for item in arg:
        found |= location_of(item)
    return found


def of_tensor(arg: Any) -> int:
    return DEVICE if arg.is_cuda else HOST if arg.is_cpu else NOWHERE


def of_interfaces(arg: Any) -> int:
    """The location of objects without a better way to find it; a property may fail where the memory is elsewhere."""
    if hasattr(arg, "__cuda_array_interface__"):
        return DEVICE
    if hasattr(arg, "__dlpack_device__"):
        return DLPACK.get(int(arg.__dlpack_device__()[0]), NOWHERE)
    return HOST if hasattr(arg, "__array_interface__") else NOWHERE


def rule_for(arg: object) -> Rule:
    """The function that returns the location of objects like this one."""
    if isinstance(arg, tuple):
        return in_tuple
    if hasattr(arg, "is_cuda") and hasattr(arg, "is_cpu"):
        return of_tensor
    if getattr(arg, "is_cuda", False) is True:
        return lambda arg: DEVICE
    if any(cls.__name__ == "ndarray" and cls.__module__ == "numpy" for cls in type(arg).__mro__):
        return lambda arg: HOST
    if hasattr(arg, "base") and (hasattr(arg, "data_ptr") or hasattr(arg, "block_shape")):
        return lambda arg: location_of(arg.base)
    is_scalar = getattr(arg, "shape", None) == () and hasattr(arg, "__array_interface__")
    offers = ("__cuda_array_interface__", "__dlpack_device__", "__array_interface__")
    return of_interfaces if not is_scalar and any(hasattr(type(arg), name) for name in offers) else nowhere


RULES: dict[type, Rule] = dict.fromkeys((int, float, bool, str, type(None)), nowhere)
