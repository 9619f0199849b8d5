"""plugin/list and host/doctor."""


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


def test_doctor_says_what_open_says(client):
    """One truth: what the doctor finds about limits is what a session gets."""
    effective = client.call("session/open", {"cpusMilli": 500})["effective"]
    checks = {check["id"]: check for check in client.call("host/doctor")["checks"]}
    for limit, check in (("memoryMb", "limit_memory"), ("pids", "limit_pids"), ("cpusMilli", "limit_cpu")):
        assert checks[check]["found"].startswith(effective[limit]["enforced"]), (limit, effective[limit], checks[check])
        assert (checks[check]["status"] == "ok") is (effective[limit]["enforced"] == "kernel")
