"""`files`: what a call created, changed and deleted, from the workspace itself."""

import base64
import hashlib
import os

from expect import plain


def entry(path, change, data=None, **more):
    found = {"path": path, "change": change, "size": len(data) if data is not None else 0, **more}
    if data is not None and change != "deleted":
        found["sha256"] = hashlib.sha256(data).hexdigest()
    return found


def without(result, *names):
    return [{key: value for key, value in file.items() if key not in names} for file in result["files"]]


def test_created_modified_deleted(client):
    session = client.open()
    first = client.run(
        "sh", "-c", "printf one > b; mkdir -p d/e; printf two > d/e/f; printf three > a", sessionId=session
    )
    assert without(first, "mime") == [
        entry("a", "created", b"three"),
        entry("b", "created", b"one"),
        entry("d/e/f", "created", b"two"),
    ]
    second = client.run("sh", "-c", "printf four > a; rm d/e/f; printf new > c", sessionId=session)
    assert without(second, "mime", "size") == [
        {k: v for k, v in e.items() if k != "size"}
        for e in (entry("a", "modified", b"four"), entry("c", "created", b"new"), entry("d/e/f", "deleted"))
    ]
    assert [f["size"] for f in second["files"][:2]] == [4, 3]
    assert client.run("cat", "a", sessionId=session)["files"] == []


def test_made_and_removed_in_one_call_is_nothing(client):
    assert client.run("sh", "-c", "echo x > a; rm a; mkdir d")["files"] == []


def test_rewrite_of_the_same_size_with_a_faked_time(client):
    session = client.open()
    client.run("sh", "-c", "printf aaaa > f; touch -d 2001-01-01 f", sessionId=session)
    result = client.run("sh", "-c", "printf bbbb > f; touch -d 2001-01-01 f", sessionId=session)
    assert without(result, "mime") == [entry("f", "modified", b"bbbb")]


def test_touched_only_is_told_by_its_hash_or_not_at_all(client):
    session = client.open()
    client.run("sh", "-c", "printf aaaa > f", sessionId=session)
    result = client.run("touch", "f", sessionId=session)
    assert result["files"] in (
        [],
        [file for file in result["files"] if (file["path"], file["change"]) == ("f", "modified")],
    )


def test_names_that_are_not_utf8(client):
    result = client.run("python3", "-c", "open(b'n\\xff', 'w').close(); open('\u00e9', 'w').close()")
    assert without(result, "mime", "sha256") == [
        {"pathBase64": base64.b64encode(b"n\xff").decode(), "change": "created", "size": 0},
        {"path": "\u00e9", "change": "created", "size": 0},
    ]


def test_awkward_names(client):
    names = ["-rf", "a b", "a\nb", "a\"b\\", "\u2028", "x" * 255]
    result = client.run("python3", "-c", f"for n in {names!r}: open(n, 'w').close()")
    assert [f["path"] for f in result["files"]] == sorted(names, key=str.encode)


def test_mime(client):
    script = "printf '\\211PNG\\r\\n\\032\\n' > a.png; echo '{}' > b.json; echo x > c.txt"
    assert [f.get("mime") for f in client.run("sh", "-c", script)["files"]] == [
        "image/png",
        "application/json",
        "text/plain",
    ]


def test_tracking_off(client):
    session = client.open(trackFiles=False)
    assert client.run("touch", "a", sessionId=session)["files"] == []
    assert [f["path"] for f in client.run("touch", "b", sessionId=session, trackFiles=True)["files"]] == ["b"]
    assert client.run("touch", "c", trackFiles=False)["files"] == []


def test_files_of_a_call_that_timed_out(client):
    result = client.run("sh", "-c", "echo x > kept; sleep 1000", timeoutMs=500)
    assert result["fault"]["type"] == "timeout" and [f["path"] for f in result["files"]] == ["kept"]


def test_what_is_no_regular_file_does_no_harm(client, make_dir):
    make_dir("outside")
    session = client.open()
    result = client.run(
        "sh",
        "-c",
        "ln -s /etc/passwd l; ln -s / root; mkfifo p; mkdir d; ln -s ../d d/loop; echo x > f",
        sessionId=session,
    )
    assert {f["path"] for f in result["files"]} <= {"l", "root", "d/loop", "f"} and "f" in {
        f["path"] for f in result["files"]
    }
    assert all("sha256" not in f for f in result["files"] if f["path"] != "f")
    plain(client.run("true", sessionId=session))


def test_unreadable_directory(client):
    session = client.open()
    client.run("sh", "-c", "mkdir d; echo x > d/f; chmod 0 d", sessionId=session)
    plain(client.run("true", sessionId=session))


def test_host_changes_are_seen_too(client):
    """Whoever made them, between start and end."""
    session = client.call("session/open", {})
    run = client.start("cat", sessionId=session["sessionId"], interactive=True)
    path = os.path.join(session["workspace"], "from-host")
    with open(path, "w", encoding="ascii") as file:
        file.write("x")
    client.call("run/stdin", {"runId": run.run_id, "text": "", "eof": True})
    assert [(f["path"], f["change"]) for f in run.result()["files"]] == [("from-host", "created")]


def test_ten_thousand_files(client):
    result = client.run("python3", "-c", "for i in range(10000): open(f'{i:05}', 'w').close()", timeoutMs=60000)
    files = result["files"]
    if isinstance(files, dict):  # too long for a line: a blob of application/json
        import json

        assert files["blob"]["mime"] == "application/json"
        files = json.loads(client.text(files))
    expected = 10000 if not result.get("filesTruncated") else len(files)
    assert [f["path"] for f in files] == [f"{i:05}" for i in range(expected)]
    assert expected >= 1000
