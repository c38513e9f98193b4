"""What the system says about the processors of this machine. Every first launch asks, so nothing else is here."""

import os


def processor_facts() -> dict[str, str]:
    """What Linux says about the first processor: a line each; nothing on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read(1 << 13)  # asking for all of them takes long where there are hundreds
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def available_cores() -> int:
    """Cores this process may use, which containers restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
