"""How fast the worker library is, beside the client of `stanchion bench`."""
import json
import pathlib

from . import figures, servers
from .figures import Series, ratio, ratio_text, rate_text
from .machine import Unavailable, describe

IN_FLIGHT = 64
CYCLES = {
    "cycle, batches of 10 on 6 connections: as many in flight": ["--batch", 10, "--connections", 6],
    "cycle, batches of 10 on 64 connections: ten times as many": ["--batch", 10],
    "cycle, one message a request on 64 connections": [],
}


def worker(lab, build, rounds, messages=300_000):
    """A worker whose handler does nothing, relative to full cycles of `stanchion bench`. It receives
    and deletes ten at a time and has 64 messages in flight, so its measure is the first cycle, which
    does the same; the others say what more in flight or smaller batches change."""
    program = pathlib.Path(build) / "bench" / "worker_bench"
    if not program.exists():
        raise Unavailable(f"{program} is not built")
    series = {name: Series() for name in ("worker", *CYCLES)}
    for number in range(rounds):
        for name in series:
            with servers.stanchion(lab) as (url, _, _):
                report = (json.loads(lab.client([str(program), url, str(messages), str(IN_FLIGHT)]))
                          if name == "worker" else lab.bench(url, *CYCLES[name]))
            series[name].add(report["result"])
            print(f"  round {number + 1}, {name}: {report['result']:,.0f}/s, "
                  f"client {report['client_cpu'] * 100:.0f} % of a core", flush=True)
    rows = [["worker, 64 in flight", rate_text(series["worker"]), "", ""]]
    for name in CYCLES:
        relative = ratio(series["worker"], series[name])
        held = "held" if relative.median() >= 0.5 else "**not held**"
        rows.append([name, rate_text(series[name]), ratio_text(relative), held])
    return (figures.table(["what", "messages/s", "the worker is … times as fast (at least 0.5)", ""],
                          rows) + f"\n{rounds} rounds, bodies of 100 B; {describe()}.")
