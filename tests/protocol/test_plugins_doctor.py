"""plugin/list, host/doctor, stats/get, and the same facts on the command line."""

import json
import subprocess


def test_languages(client):
    plugins = client.call("plugin/list")["plugins"]
    assert [plugin for plugin in plugins if plugin["status"] != "ok"] == []
    assert {"python", "bash", "sh", "node"} <= {language for plugin in plugins for language in plugin["languages"]}
    assert all(plugin["path"].startswith("/") and plugin["version"] for plugin in plugins)


def test_doctor(client, as_user):
    report = client.call("host/doctor")
    assert len(report["checks"]) >= 5
    ids = [check["id"] for check in report["checks"]]
    assert len(set(ids)) == len(ids)
    for check in report["checks"]:
        assert check["status"] in ("ok", "warn", "fail") and check["found"]
        assert bool(check.get("fix")) or check["status"] == "ok", check
    assert report["ok"] is all(check["status"] != "fail" for check in report["checks"])
    # it runs boxes here, or no other test of this suite could pass
    assert report["ok"] is True


def test_doctor_on_the_command_line(program, client, environment, as_user):
    argv = [program, "doctor"]
    if as_user != "root" and __import__("os").geteuid() == 0:
        argv = ["setpriv", f"--reuid={as_user}", f"--regid={as_user}", "--clear-groups", *argv]
    machine = subprocess.run([*argv, "--json"], env=environment, capture_output=True, text=True, timeout=60)
    report = json.loads(machine.stdout)
    assert [c["id"] for c in report["checks"]] == [c["id"] for c in client.call("host/doctor")["checks"]]
    person = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert machine.returncode == person.returncode == (0 if report["ok"] else 1)
    assert all(check["id"] in person.stdout for check in report["checks"])


def test_doctor_says_what_open_says(client):
    """One truth: what the doctor finds about limits is what a session gets."""
    effective = client.call("session/open", {"cpusMilli": 500})["effective"]
    enforced = {effective[what]["enforced"] for what in ("memoryMb", "pids", "cpusMilli")}
    report = client.call("host/doctor")
    limits = [check for check in report["checks"] if "cgroup" in check["id"] or "limit" in check["id"]]
    assert limits
    if enforced != {"kernel"}:
        assert any(check["status"] != "ok" for check in limits)
