"""blob/write, blob/read, blob/free and where {"blob"} is accepted."""

import base64
import hashlib
import os

import pytest

from expect import plain, refused

pytestmark = pytest.mark.any_user


def read(client, blob, offset, length):
    return client.call("blob/read", {"id": blob, "offset": offset, "length": length})


def test_write_append_read_free(client):
    first = client.call("blob/write", {"text": "h\u00e9"})
    assert first["bytes"] == 3
    assert client.call("blob/write", {"id": first["id"], "base64": "AP8="}) == {"id": first["id"], "bytes": 5}
    pages = [read(client, first["id"], 0, 5), read(client, first["id"], 1, 2), read(client, first["id"], 5, 10)]
    assert base64.b64decode(pages[0]["base64"]) == b"h\xc3\xa9\0\xff" and pages[0]["eof"] is True
    assert (pages[1].get("text"), pages[1]["nextOffset"], pages[1]["eof"]) == ("\u00e9", 3, False)
    assert (pages[2].get("text"), pages[2]["nextOffset"], pages[2]["eof"]) == ("", 5, True)
    assert client.call("blob/free", {"id": first["id"]}) == {}
    refused(client.fail("blob/read", {"id": first["id"], "offset": 0, "length": 1}), "gone", "/id")
    refused(client.fail("blob/free", {"id": first["id"]}), "gone", "/id")
    refused(client.fail("blob/write", {"id": first["id"], "text": "x"}), "gone", "/id")
    refused(client.fail("run/argv", {"argv": ["cat"], "stdin": {"blob": {"id": first["id"]}}}), "gone")


def test_unknown_id(client):
    for method, more in (("blob/read", {"offset": 0, "length": 1}), ("blob/free", {}), ("blob/write", {"text": "x"})):
        refused(client.fail(method, {"id": "never-was", **more}), "unknown_handle", "/id")


def test_offset_behind_the_end(client):
    blob = client.call("blob/write", {"text": "abc"})["id"]
    refused(client.fail("blob/read", {"id": blob, "offset": 4, "length": 1}), "out_of_range", "/offset")


@pytest.mark.parametrize(
    "data",
    [b"x" * 5_000_000, os.urandom(300_000), ("\u20ac" * 100_000).encode(), b"\1" * 100_000],
    ids=["letters", "random", "three-byte", "control"],
)
def test_large_blob_in_pages(client, data):
    blob = None
    for at in range(0, len(data), 1 << 20):
        params = {"base64": base64.b64encode(data[at : at + (1 << 20)]).decode()}
        blob = client.call("blob/write", params if blob is None else {"id": blob, **params})["id"]
    result = client.run("sha256sum", stdin={"blob": {"id": blob}})
    plain(result, hashlib.sha256(data).hexdigest() + "  -\n")
    assert client.text({"blob": {"id": blob, "bytes": len(data)}}) == data


def test_store_is_capped_and_the_oldest_goes(client):
    limit = client.welcome["limits"]["blobBytes"]
    piece = base64.b64encode(bytes(4 << 20)).decode()
    blobs = [client.call("blob/write", {"base64": piece})["id"] for _ in range(limit // (4 << 20) + 1)]
    refused(client.fail("blob/read", {"id": blobs[0], "offset": 0, "length": 1}), "gone", "/id")
    assert read(client, blobs[-1], 0, 1)["nextOffset"] == 1
    assert read(client, blobs[1], 0, 1)["nextOffset"] == 1


def test_output_blob_goes_with_its_session(client):
    session = client.open()
    blob = client.run("python3", "-c", "print('x' * 99999)", sessionId=session)["stdout"]["blob"]["id"]
    assert read(client, blob, 0, 3)["text"] == "xxx"
    client.call("session/close", {"sessionId": session})
    refused(client.fail("blob/read", {"id": blob, "offset": 0, "length": 1}), "gone", "/id")


def test_ids_cannot_be_guessed(client):
    ids = [client.call("blob/write", {"text": "x"})["id"] for _ in range(20)]
    assert len(set(ids)) == 20 and all(len(i) >= 16 for i in ids)
