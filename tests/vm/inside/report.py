"""A pytest plugin: one JSON line a test on stdout, which is what becomes of it and why."""

import json


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        why = report.longrepr[2] if report.skipped else str(report.longrepr or "")[-3000:]
        line = {"name": report.nodeid, "value": report.outcome, "why": why, "seconds": round(report.duration, 2)}
        print("\n" + json.dumps(line), flush=True)
