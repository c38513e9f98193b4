"""Names of torch's modules for devices that `torch.cpu` has not: programs for GPUs ask for it by the name of their
device.

device = driver.active.get_active_torch_device()
getattr(torch, device.type).set_stream(stream)
torch.cpu.get_device_properties("cpu").multi_processor_count        # cores that this process may use
"""

import platform
from types import SimpleNamespace

from tilework.targets.cpu.processor import available_cores


def set_stream(stream: object) -> None:
    """Nothing to do: what is called on the host has run when the call returns."""


def get_device_properties(device: object = None) -> SimpleNamespace:
    """The host as a device: its cores are what a GPU's multiprocessors are."""
    return SimpleNamespace(name=platform.processor() or platform.machine(), multi_processor_count=available_cores())


def complete(module: object) -> None:
    """Give a module what it lacks; what a later torch has stays."""
    for function in (set_stream, get_device_properties):
        if not hasattr(module, function.__name__):
            setattr(module, function.__name__, function)
