"""Escape calls: refused, reported with call, process and count, and whoever made one is ended, whatever it does about SIGSYS; nobody
else is."""

import os
import signal

import pytest

from expect import fault, plain

PROCESS = "escape-program"  # 14 characters: fits a process name


@pytest.fixture
def escape(client, programs):
    path = programs.build("escape.c", "cc", "-static")

    def run(way, **params):
        session = client.call("session/open", {"timeoutMs": 60000})
        inside = programs.place(session, path, PROCESS)
        return client.run(inside, way, sessionId=session["sessionId"], timeout=90, **params)

    return run


def blamed(result, process=PROCESS, call="mount"):
    found = fault(result, "escape_blocked")
    assert (found["syscall"], found["process"]) == (call, process)
    return found


def ended_by(result, name):
    number = getattr(signal, f"SIG{name}")
    assert (result["signal"], result["exitCode"], result["stdout"]) == (name, 128 + number, "")


def count(result):
    return result["usage"].get("syscallsRefused", 0)


# What the status tells: SIGSYS where that is certain to end it.
@pytest.mark.parametrize(
    "way, by", [("plain", "SYS"), ("ignored", "KILL"), ("caught", "KILL"), ("blocked", "KILL"), ("own_filter_allows", "SYS")]
)
def test_one_thread(escape, way, by):
    result = escape(way)
    blamed(result)
    ended_by(result, by)
    assert count(result) == 1


@pytest.mark.parametrize("way, by", [("thread", "SYS"), ("others_block", "SYS,KILL"), ("leader_blocks", "SYS,KILL"),
                                     ("leader_gone", "SYS,KILL"), ("ignored_meanwhile", "SYS,KILL"), ("leader_in_vfork", "KILL")])
def test_several_threads(escape, way, by):
    """None of them says another word. Where the signal goes to a thread that cannot take it, SIGKILL follows."""
    result = escape(way)
    blamed(result)
    assert result["signal"] in by.split(",")
    ended_by(result, result["signal"])
    assert count(result) == 1
    assert result["usage"]["wallUs"] < 30_000_000


def test_threads_at_once(escape):
    result = escape("threads_at_once")
    blamed(result)
    ended_by(result, result["signal"])
    assert 1 <= count(result) <= 20


@pytest.mark.parametrize("way, name", [("renamed", "a\\nb\\tTgid:\\t1"), ("nameless", "?")])
def test_name_of_the_process(escape, way, name):
    """As the process has named itself; the kernel writes its control characters out, so it can forge no line of its status."""
    result = escape(way)
    found = fault(result, "escape_blocked")
    assert found["process"].replace("\t", "\\t") == name
    ended_by(result, "SYS")


@pytest.mark.parametrize("way, children", [("children", 5), ("children_at_once", 20)])
def test_each_is_counted_and_the_parent_lives(escape, way, children):
    result = escape(way)
    blamed(result)
    assert (result["exitCode"], result["stdout"]) == (0, f"{children} children ended, the parent did not\n")
    assert "signal" not in result and result["success"] is False
    assert count(result) == children


def test_stopped_while_it_is_looked_at(escape):
    result = escape("stopped")
    blamed(result)
    assert (result["exitCode"], result["stdout"]) == (0, "the child ended, the parent did not\n")
    assert count(result) == 1


def test_orphan(escape):
    result = escape("orphan")
    blamed(result)
    assert (result["exitCode"], result["stdout"], count(result)) == (0, "", 1)


def test_no_bystander_is_killed_when_it_is_gone_meanwhile(escape):
    result = escape("race")
    assert (result["exitCode"], result["stdout"]) == (0, "the bystander lives\n")
    if "fault" in result:  # the first that was seen may be gone before its name could be read
        found = fault(result, "escape_blocked")
        assert found["syscall"] == "mount" and found["process"] in (PROCESS, "?")
        assert 1 <= count(result) <= 300


def test_a_filter_of_the_code_s_own_may_answer_first(escape):
    """Documented: it can only tighten, and then there is nothing to report."""
    plain(escape("own_filter_refuses"), "refused by its own filter\n")


def test_no_second_listener(escape):
    """The kernel's limit of one listener keeps code from answering in our place."""
    result = escape("own_listener")
    blamed(result)
    assert (result["signal"], result["stdout"]) == ("SYS", "no second listener\n")


def test_the_sidecar_and_other_boxes_go_on(client, programs):
    session = client.call("session/open", {"timeoutMs": 60000})
    inside = programs.place(session, programs.build("escape.c", "cc", "-static"), PROCESS)
    other = client.start("sleep", "1000.31", sessionId=session["sessionId"])
    futures = [
        client.send("run/argv", {"argv": [inside, "children_at_once"], "sessionId": session["sessionId"]}) for _ in range(4)
    ]
    for future in futures:
        result = future.result(90)
        assert result["stdout"] == "20 children ended, the parent did not\n"
        assert count(result) == 20
    assert not other.done()
    client.call("ping")
    client.cancel(other)
    assert other.result(30)["fault"]["type"] == "cancelled"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
def test_a_call_that_libraries_do_not_know_has_its_name(client):
    code = "import ctypes\nctypes.CDLL(None).syscall(467, -100, b'/', 0, 0, 0)\nprint('alive')"
    result = client.run("python3", "-Sc", code)
    blamed(result, "python3", "open_tree_attr")
    ended_by(result, "SYS")
