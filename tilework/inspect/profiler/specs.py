"""Peak rates of GPUs by their units and clocks; clocks are in kHz, `width` is the bits of an operand.

>>> max_bps("CUDA", "90", 6144, 3201000) / 1e12
4.916736
"""

from collections.abc import Callable

# operations per second of 8-bit operands; wider ones take as many times as long
flops_by_device: dict[str, dict[str, Callable[[float, float], float]]] = {
    "CUDA": {
        "80": lambda num_sms, clock_rate: 624e12,
        "89": lambda num_sms, clock_rate: 330.3e12,
        "90": lambda num_sms, clock_rate: num_sms / 114 * clock_rate / 1755e3 * 1513e12,
        "100": lambda num_sms, clock_rate: num_sms * 16384 * clock_rate / 1e3 * 1e6,
    },
}
amd_fp8_flops_by_arch = {"gfx90a": 1024, "gfx942": 4096, "gfx950": 8192}
amd_bps_by_arch = {"gfx90a": 3.2e12, "gfx942": 5.3e12, "gfx950": 8.0e12}


def max_flops(device_type: str, arch: str, width: int, num_sms: float, clock_rate: float) -> float:
    """Operations per second of dense matrix multiplications."""
    if device_type == "HIP":
        if arch not in amd_fp8_flops_by_arch:
            raise ValueError(f"Unsupported architecture: {arch}")
        return amd_fp8_flops_by_arch[arch] * num_sms * clock_rate * 1e3 / (width / 8)
    if device_type not in flops_by_device:
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in flops_by_device[device_type]:
        raise ValueError(f"Unsupported architecture: {arch}")
    return flops_by_device[device_type][arch](num_sms, clock_rate) / (width / 8)


def max_bps(device_type: str, arch: str, bus_width: float, memory_clock_rate: float) -> float:
    """Bytes per second of memory."""
    if device_type == "CUDA":
        return 2 * bus_width * memory_clock_rate * 1e3 / 8
    if device_type != "HIP":
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in amd_bps_by_arch:
        raise ValueError(f"Unsupported architecture: {arch}")
    return amd_bps_by_arch[arch]
