"""A program that was written for the kern-sandbox package: every use that its pages show, on this one. What waits for a
later sidecar is in test_options.REFUSED by its name."""

import dataclasses
import inspect
import json
import os
import sys

import pytest

import kern_sandbox as kern

OPTIONS = """image setup workspace memory_mb cpus pids timeout_s network mounts tmpfs profiles env max_output_bytes
    deps_readonly security_profile apparmor require_limits enforce_limits cap_drop track_files on_stdout on_stderr prewarm
    egress_allow""".split()
RESULT = "stdout stderr exit_code duration_ms fault files results truncated success code_stderr runtime_notes".split()


def test_names_and_defaults():
    parameters = inspect.signature(kern.Sandbox).parameters
    assert [name for name in OPTIONS if name not in parameters] == []
    defaults = {name: parameters[name].default for name in OPTIONS}
    assert (defaults["memory_mb"], defaults["pids"], defaults["timeout_s"], defaults["cap_drop"]) == (512, 256, 30, ("ALL",))
    assert (defaults["max_output_bytes"], defaults["deps_readonly"], defaults["network"]) == (64 << 20, True, False)
    result = kern.run_code("1")
    assert [name for name in RESULT if not hasattr(result, name)] == [] and dataclasses.is_dataclass(result)
    assert bool(result) is True and bool(kern.run_code("raise SystemExit(3)")) is False
    assert issubclass(kern.MountRefused, kern.SandboxError)
    for name in ("png", "jpeg", "html", "svg", "markdown", "json", "text"):
        assert hasattr(result.results[0], name)


def test_a_one_shot_and_a_loop_that_reads_a_field():
    assert kern.run_code("import sys; print(sys.version)").stdout.startswith("3.")
    result = kern.run_code("while True: pass", timeout_s=0.5)
    assert result.fault.type == "timeout" and result.success is False


def test_every_option_at_once(tmp_path):
    options = dict(
        setup="true", workspace=None, memory_mb=512, cpus=None, pids=256, timeout_s=30, network=False, mounts=None, tmpfs=None,
        profiles=None, max_output_bytes=64 << 20, deps_readonly=True, security_profile=None, apparmor=None,
        require_limits=False, cap_drop=("ALL",),
    )  # fmt: skip
    with kern.Sandbox(**options) as box:
        assert box.run_code("print(1)").stdout == "1\n"
    with kern.Sandbox(deps_readonly=False, enforce_limits=True, track_files=False) as box:
        assert box.run_code("open('a', 'w')").files == []
    with kern.Sandbox(security_profile="untrusted") as box:
        assert box.run(["true"])
    with kern.Sandbox(cap_drop=(), tmpfs={"/var/log/x": "1m", "/var/cache/x": "16m"}) as box:
        assert box.run(["sh", "-c", "touch /var/log/x/a /var/cache/x/a"])
    with pytest.raises(kern.MountRefused, match="/run/kern"):  # the one target that a box needs itself
        kern.Sandbox(tmpfs={"/run": "1m"}).open()
    with kern.Sandbox(env={"HOME": "/workspace"}, tmpfs={"/tmp": "128m"}) as box:
        assert box.run(["sh", "-c", "echo $HOME; df -m /tmp | tail -1"]).stdout.split()[:3:2] == ["/workspace", "128"]
    with kern.Sandbox(tmpfs={}) as box:
        assert not box.run(["touch", "/tmp/a"])
    (tmp_path / "m" / "scratch").mkdir(parents=True)  # a box makes no directory on the host, also no mount point
    with kern.Sandbox(mounts={str(tmp_path / "m"): "/tmp"}, tmpfs={"/tmp/scratch": "8m"}) as box:
        assert box.run(["sh", "-c", "echo 1 >/tmp/kept; echo 1 >/tmp/scratch/gone"])
    assert (tmp_path / "m" / "kept").exists() and not (tmp_path / "m" / "scratch" / "gone").exists()


def test_a_table_and_a_chart_without_savefig():
    version = "{}.{}".format(*sys.version_info[:2])
    packages = os.path.join(os.path.dirname(os.environ["KERN_SIDECAR"]), "python-packages", version)
    if not os.path.isdir(packages):
        pytest.skip("tests/packages-python.sh has not brought pandas and matplotlib")
    with kern.Sandbox(memory_mb=1024, mounts={packages: ("/packages", "ro")}, env={"PYTHONPATH": "/packages"}) as box:
        box.write_file("data.csv", "a,b\n1,2\n3,4\n")
        result = box.run_code("import pandas as pd; pd.read_csv('data.csv').describe()")
        assert "<table" in result.results[0].html
        result = box.run_code("import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as p; p.plot([1, 4, 9])")
        assert next((x.png for x in result.results if x.png), None).startswith(b"\x89PNG")


def test_kernel_prewarm_callbacks_snapshot(tmp_path):
    with kern.Sandbox() as box, box.kernel() as kernel:
        kernel.run_code("a = range(1_000_000)")
        assert kernel.run_code("sum(a)").results[0].text == "499999500000"
    with kern.Sandbox(prewarm=4) as box:
        assert box.run_code("print(1)").stdout == "1\n"
    lines = []
    kern.run_code("for i in range(3): print(i)", on_stdout=lambda b: lines.append(b.decode()))
    assert "".join(lines) == "0\n1\n2\n"
    with kern.Sandbox(workspace=tmp_path / "w") as box:
        box.write_file("a", b"1")
        box.snapshot(str(tmp_path / "s.tar.gz"))
    with kern.Sandbox() as box:
        box.restore(str(tmp_path / "s.tar.gz"))
        assert box.read_file("a") == b"1" and [f.path for f in box.list_files("")] == ["a"]


def test_the_limits_of_processes_give_no_fault_and_are_counted():
    code = "import os\nn = 0\ntry:\n    for n in range(100):\n        if os.fork() == 0:\n            import time; time.sleep(5)\nexcept OSError: pass\nprint(n)"
    result = kern.run_code(code, pids=20)
    assert result and int(result.stdout.split()[-1]) < 20
    assert result.usage.pids_refused is None or result.usage.pids_refused >= 1


def test_results_can_be_printed_compared_and_turned_into_data():
    result = kern.run_code("{'a': 1}")
    assert "exit_code=0" in repr(result)
    assert json.loads(json.dumps(dataclasses.asdict(result)))["results"][0]["data"]["text/plain"] == "{'a': 1}"
