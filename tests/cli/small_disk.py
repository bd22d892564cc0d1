"""A file system with room for little, which a test may fill."""
import contextlib
import subprocess


@contextlib.contextmanager
def mounted(path, mebibytes):
    """A file system in memory at `path`; yields whether it could be mounted."""
    path.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(path)], check=True)


def fill(path):
    """Takes all the room that is left, by a file."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass
