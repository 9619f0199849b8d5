"""Images of results: checked by a worker, PNG encoded again; what is none is dropped with its reason, and the call goes on."""

import base64
import struct
import zlib

import pytest

pytestmark = pytest.mark.any_user


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=3, height=2, rows=None, extra=b"", depth=8, color=2, interlace=0, head=None, tail=b""):
    """RGB, unless said otherwise; each row begins with its filter, 0."""
    rows = rows if rows is not None else b"".join(b"\0" + bytes(range(3 * width)) for _ in range(height))
    head = head or struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    body = chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body + tail


def chunks(data):
    at, found = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        found[kind] = found.get(kind, b"") + data[at + 8 : at + 8 + length]
        at += 12 + length
    return found


def pixels(data):
    """Rows of an 8-bit RGB PNG, filters undone (PNG specification, section 9)."""
    found = chunks(data)
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    raw, rows, above = zlib.decompress(found[b"IDAT"]), [], bytes(3 * width)
    for y in range(height):
        line = raw[y * (3 * width + 1) : (y + 1) * (3 * width + 1)]
        row = bytearray(line[1:])
        for i in range(len(row)):
            left, up, corner = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
            guess = left + up - corner
            paeth = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[line[0]]) & 255
        rows.append(bytes(row))
        above = row
    return rows


def show(client, *images, mime="image/png", **params):
    """The results of a call that displays these."""
    code = "import base64\n"
    for image in images:
        code += f"print('before'); display({{'text/plain': 'p', {mime!r}: base64.b64decode({base64.b64encode(image).decode()!r})}}, raw=True); print('after')\n"
    result = client.code(code, **params)
    assert (result["exitCode"], result["resultChannel"]) == (0, "ok"), result
    assert result["stdout"] == "before\nafter\n" * len(images)
    for number, entry in enumerate(result["results"]):
        assert entry["at"]["stdout"] == len("before\nafter\n") * number + len("before\n")
    return result["results"]


def data_of(client, entry, mime="image/png"):
    value = entry["data"][mime]
    return client.text(value) if isinstance(value, dict) else base64.b64decode(value, validate=True)


def test_a_png_is_encoded_again(client):
    hidden = chunk(b"tEXt", b"secret\0" + b"hidden" * 100) + chunk(b"zzZz", b"unknown")
    given = png(extra=hidden + chunk(b"pHYs", struct.pack(">IIB", 3937, 3937, 1)))
    (entry,) = show(client, given)
    got = data_of(client, entry)
    assert set(chunks(got)) == {b"IHDR", b"pHYs", b"IDAT", b"IEND"}
    assert pixels(got) == pixels(given) == [bytes(range(9))] * 2
    assert "dropped" not in entry and entry["data"]["text/plain"] == "p"


def test_palette_and_transparency_stay(client):
    extra = chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\0\x80")
    given = png(4, 1, b"\0\0\1\2\3", extra, color=3)
    got = chunks(data_of(client, show(client, given)[0]))
    assert (got[b"PLTE"], got[b"tRNS"], got[b"IHDR"]) == (bytes(range(12)), b"\0\x80", chunks(given)[b"IHDR"])


def test_interlaced(client):
    given = png(1, 1, b"\0\1\2\3", interlace=1)
    got = data_of(client, show(client, given)[0])
    assert pixels(got) == [b"\1\2\3"] and chunks(got)[b"IHDR"][-1] == 0


def header(width, height, depth=8, color=2, interlace=0):
    return struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)


BAD = {
    "empty": (b"", "no PNG"),
    "text": (b"hello, I am no picture at all, but long enough", "no PNG"),
    "signature only": (b"\x89PNG\r\n\x1a\n", "no PNG"),
    "cut": (png()[:-20], "a damaged PNG"),
    "no end": (png()[:-12], "a PNG without an end"),
    "polyglot": (png(tail=b"<script>"), "a PNG with something behind its end"),
    "zero": (png(head=header(0, 1)), "a damaged PNG"),
    "100,000 x 100,000": (png(head=header(100_000, 100_000)), "a damaged PNG"),
    "too many pixels": (png(head=header(16_384, 16_384)), "a PNG of more than 40 million pixels"),
    "interlaced bomb": (png(head=header(6_000, 6_000, 8, 6, 1)), "an interlaced PNG of more than 64 MiB"),
    "bad depth": (png(head=header(3, 2, 3)), "a damaged PNG"),
    "short data": (png(3, 200, b"\0" * 10), "a damaged PNG"),
    "bad crc": (png().replace(zlib.crc32(b"IHDR" + header(3, 2)).to_bytes(4, "big"), b"abcd"), "a damaged PNG"),
    "chunk beyond": (b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s", 13, b"IHDR") + header(3, 2) + b"crc!" + b"\xff" * 40, "a damaged PNG"),
    "many chunks": (png(extra=chunk(b"tEXt", b"a\0b") * 5000), "a damaged PNG"),
    "text bomb": (png(extra=chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(50_000_000)))), None),
}


@pytest.mark.parametrize("image, reason", BAD.values(), ids=BAD)
def test_what_is_no_png_is_dropped(client, image, reason):
    (entry,) = show(client, image)
    assert entry["data"].get("text/plain") == "p"
    if reason is None:
        assert len(data_of(client, entry)) < 1000
    else:
        assert entry["dropped"] == [{"mime": "image/png", "reason": reason}]


def test_a_bomb_of_pixels(client):
    """746 KB that are 768 MB when decoded; one below the cap is decoded in rows."""
    rows = zlib.compressobj(9)
    idat = b"".join(rows.compress(bytes(1 + 3 * 6000)) for _ in range(6000)) + rows.flush()
    body = chunk(b"IHDR", header(6000, 6000)) + chunk(b"IDAT", idat) + chunk(b"IEND", b"")
    (entry,) = show(client, b"\x89PNG\r\n\x1a\n" + body, timeoutMs=60000)
    assert chunks(data_of(client, entry))[b"IHDR"] == header(6000, 6000)


JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x0b\x08\0\2\0\3\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0\0\xff\xd9"
OTHERS = {
    "jpeg": ("image/jpeg", JPEG, None),
    "jpeg cut": ("image/jpeg", JPEG[:-2], "a JPEG without an end"),
    "jpeg without size": ("image/jpeg", b"\xff\xd8\xff\xe0\0\x04ab\xff\xd9", "a JPEG without a size"),
    "png as jpeg": ("image/jpeg", png(), "no JPEG"),
    "jpeg huge": ("image/jpeg", JPEG.replace(b"\0\2\0\3", b"\xff\xff\xff\xff"), "an image of more than 40 million pixels"),
    "gif": ("image/gif", b"GIF89a\1\0\1\0\0\0\0;", None),
    "no gif": ("image/gif", b"GIF88a\1\0\1\0\0\0\0;", "no GIF"),
    "gif empty": ("image/gif", b"GIF89a\0\0\1\0\0\0\0;", "an image without pixels"),
    "webp": ("image/webp", b"RIFF\x0c\0\0\0WEBPVP8 ", None),
    "no webp": ("image/webp", b"RIFF\x0c\0\0\0WAVEfmt ", "no WebP"),
}


@pytest.mark.parametrize("mime, image, reason", OTHERS.values(), ids=OTHERS)
def test_other_images(client, mime, image, reason):
    (entry,) = show(client, image, mime=mime)
    if reason:
        assert entry["dropped"] == [{"mime": mime, "reason": reason}]
    else:
        assert data_of(client, entry, mime) == image and "dropped" not in entry


def test_many_in_order(client):
    images = [png(3, 2, b"".join(b"\0" + bytes([n] * 9) for _ in range(2))) for n in range(30)]
    got = [pixels(data_of(client, entry))[0][0] for entry in show(client, *images)]
    assert got == list(range(30))


def test_in_a_kernel_and_live(client):
    kernel = client.call("kernel/open", {"sessionId": client.open()})["kernelId"]
    code = f"import base64\ndisplay({{'image/png': base64.b64decode({base64.b64encode(png()).decode()!r})}}, raw=True)\n1"
    future = client.send("kernel/run", {"kernelId": kernel, "code": code, "stream": "live"})
    first, second = future.result()["results"]
    assert pixels(data_of(client, first)) == [bytes(range(9))] * 2 and second["kind"] == "value"
    shown = [n["params"] for n in client.notifications if n["method"] == "run/display"]
    assert [s["op"] for s in shown] == ["display", "value"] and shown[0]["data"] == first["data"]


def test_an_image_and_then_death(client):
    """What was shown before a crash is kept."""
    code = f"import base64, os\ndisplay({{'image/png': base64.b64decode({base64.b64encode(png()).decode()!r})}}, raw=True)\nos._exit(3)"
    result = client.code(code)
    assert result["exitCode"] == 3 and len(result["results"]) == 1


def test_not_acknowledged_when_the_code_dies(client):
    """The frame is under way when its sender is gone: it is recorded all the same."""
    code = (
        f"import base64, os, threading, time\nimage = base64.b64decode({base64.b64encode(png()).decode()!r})\n"
        "threading.Thread(target=lambda: display({'image/png': image}, raw=True), daemon=True).start()\n"
        "time.sleep(0.01)\nos._exit(0)"
    )
    for _ in range(10):
        result = client.code(code)
        assert len(result["results"]) <= 1 and result["exitCode"] == 0
