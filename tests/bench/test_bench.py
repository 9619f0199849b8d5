"""That the bench runs and counts right; never how long anything took."""

import json
import os
import subprocess
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "tests/client")]

from cpu import Group, Meter, Others, Tree  # noqa: E402
from flight import Function, Threads  # noqa: E402
import flight  # noqa: E402
from rivals import Docker, Lines, Spawns  # noqa: E402
import rivals  # noqa: E402
from table import Row, failed, lines_of  # noqa: E402

BURN = "import time\nwhile time.process_time() < 0.2: pass"
FIGURES = {"min", "p50", "p90", "p99", "cpuMs", "cpuWhole", "cpuErrorMs", "oursIs"}


def bench(*args):
    argv = [sys.executable, "-B", os.path.join(HERE, "bench.py"), "--json", "--rounds", "1", "--calls", "1", *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["cpus"] >= 1 and found["kernel"] and isinstance(found["missing"], list)
    return {(row["block"], row["row"]): row for row in found["rows"]}


def test_a_run_has_every_figure_of_ours():
    rows = bench("--only", "kern-sidecar zygote", "--at-once", "2", "--seconds", "0.05")
    more = {"python": set(), "bash": set(), "node": set(), "2 python at once": {"all"}}
    more.update({f"sustained, {n} in flight": {"perSecond", "firstQuarter", "lastQuarter"} for n in (1, 2, 16)})
    assert {block for block, _ in rows} | {"node"} == set(more)  # there need be no node
    for (block, _), row in rows.items():
        assert row["ours"] and row["failures"] == 0 and row["n"] >= 1, row
        assert set(row) == {"block", "row", "ours", "n", "failures"} | FIGURES | more[block]
        assert 0 < row["min"] <= row["p50"] <= row["p90"] <= row["p99"]
    assert rows["2 python at once", "kern-sidecar zygote"]["n"] == 2


def test_a_run_has_the_cells_and_the_bare_ones():
    rows = bench("--only", "kernel cell", "--at-once", "")
    there = {name for _, name in rows}
    assert {"kern-sidecar python", "kern-sidecar python, no files", "kern-sidecar sh", "bare python, exec"} <= there
    assert all(row["n"] == 1 and row["cpuMs"] >= 0 for (_, name), row in rows.items() if "kern-sidecar" in name or "bare" in name)


class NoMeter(Meter):
    def ms(self):
        return 0


@pytest.mark.parametrize("at_once, pauses", [(1, 5), (5, 1)])
def test_pauses_are_before_calls_and_bursts(monkeypatch, at_once, pauses):
    slept, begun = [], threading.Barrier(at_once)
    monkeypatch.setattr(flight.time, "sleep", slept.append)
    calls = Threads(begun.wait).fly(calls=5, at_once=at_once, pause=20)
    assert [call.why for call in calls] == [None] * 5 and slept == [0.02] * pauses


def test_what_fails_is_counted_and_the_first_reason_kept():
    turns = iter(range(100))

    def every_second():
        turn = next(turns)
        if turn % 2:
            raise RuntimeError(f"turn {turn}")

    row = Row("b", "r", lambda: Function(every_second), NoMeter(), ours=True)
    row.warm_up()
    row.slice(7)
    [line] = lines_of([row])
    assert (line["n"], line["failures"], line["reason"]) == (3, 5, "turn 1")
    assert "p50" in line and failed([line])


@pytest.mark.parametrize("argv, why", [(["sh", "-c", "echo no >&2; exit 3"], "status 3, no"), (["echo", "2"], "status 0, b'2\\n'"),
                                       (["/does/not/exist"], "FileNotFoundError")])  # fmt: skip
def test_a_rival_that_never_works_is_left_at_that(argv, why):
    row = Row("b", "r", lambda: Spawns(argv, b"1\n"), NoMeter())
    row.warm_up()
    row.slice(7)
    [line] = lines_of([row])
    assert (line["n"], line["failures"]) == (0, 3) and line["reason"].startswith(why)
    assert not failed([line])  # it is none of ours


def test_processor_time_of_what_ended_and_of_what_lives():
    others = Others(without=[])
    before = others.ms()
    [call] = Spawns([sys.executable, "-c", BURN], b"").fly(calls=1)
    assert call.why is None and others.ms() - before >= 195
    lives = Lines([sys.executable, "-u", "-c", BURN + "\nprint(1)\ninput()"])
    lives.ask(b"", b"1\n")
    assert Tree(lives.process.pid).ms() >= 195 and others.ms() - before >= 390
    lives.close()
    assert others.ms() - before >= 390


def test_a_cgroup_counts_what_nobody_reaps():
    group = Group.make(f"kern-bench-test-{os.getpid()}")
    if not group:
        pytest.skip("no cgroup of cpuacct can be made here")
    lost = f"import signal, subprocess, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nsubprocess.call([sys.executable, '-c', {BURN!r}])"
    program, args = group.command(sys.executable, ("-c", lost))
    try:
        assert subprocess.run([program, *args], check=False, timeout=60).returncode == 0
        assert group.ms() >= 195
    finally:
        group.remove()
    assert not os.path.exists(group.path)


def test_docker_runs_images_that_are_here(tmp_path, monkeypatch):
    fake = tmp_path / "docker"
    fake.write_text('#!/bin/sh\ncase $1 in\nversion) ;;\nimage) echo "<none>:<none> alpine:3 my/python:3" ;;\n'
                    'run) case "$*" in *" --pull never "*alpine:3*) echo 1 ;; *) echo "no such program" >&2; exit 127 ;; esac ;;\nesac\n')  # fmt: skip
    fake.chmod(0o755)
    monkeypatch.setitem(rivals.ENV, "PATH", f"{tmp_path}:{rivals.PATH}")
    docker = Docker()
    assert docker.images == ["my/python:3", "alpine:3"]
    way = docker.way(["echo", "1"], b"1\n")
    assert "alpine:3" in way.argv and [call.why for call in way.fly(calls=2, at_once=2)] == [None, None]
    with pytest.raises(OSError, match="no image here runs nothing"):
        docker.way(["nothing"], b"2\n")


def test_a_docker_without_its_daemon_says_so(tmp_path, monkeypatch):
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'no daemon' >&2; exit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setitem(rivals.ENV, "PATH", f"{tmp_path}:{rivals.PATH}")
    with pytest.raises(OSError, match="no daemon"):
        Docker()
