"""How long calls took, and whether that is too long."""

# A call that had to wait for a machine that does other things as well is still answered.
SLOWEST_SECONDS_MAX = 30


def usual(durations):
    """The longest but for two, or one in a hundred: a disk makes a call wait now and then."""
    exceptions = max(2, len(durations) // 100)
    return sorted(durations)[max(0, len(durations) - 1 - exceptions)]


def slowness(what, durations, seconds_max):
    """The problems of calls that should take so long at most."""
    if not durations:
        return []
    slowest = max(durations)
    if usual(durations) > seconds_max:
        return [f"{what} took {usual(durations):.2f} s, and not just once or twice"]
    return [f"{what} took {slowest:.1f} s"] * (slowest > SLOWEST_SECONDS_MAX)
