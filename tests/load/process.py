"""What the operating system reports about a running process."""

import os
import time

MIB = 1 << 20


def resident_bytes(pid):
    """Private and shared memory: what would be freed at most if the process ended."""
    return status_bytes(pid, "VmRSS:")


def peak_bytes(pid):
    """The most that this ever was."""
    return status_bytes(pid, "VmHWM:")


def status_bytes(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid):
    """Processor time of all its threads, exact to the nanosecond. One may end meanwhile."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as stat:
                total += int(stat.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


def cpu_share(pid, seconds):
    """The share of one CPU that it used over the next `seconds`."""
    began, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def open_connections(pid):
    """Without the data files, which are opened and closed on their own."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def wait_for_open_connections(pid, at_most, seconds):
    """Waits until the process has closed what it had open beyond this; False if it does not."""
    deadline = time.monotonic() + seconds
    while open_connections(pid) > at_most:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
