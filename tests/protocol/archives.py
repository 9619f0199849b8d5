"""Archives that tests make by hand, and what a directory holds: for the tests of session/snapshot and session/restore."""

import gzip
import hashlib
import io
import os
import stat
import tarfile

BLOCK = 512


def header(name=b"a", type=b"0", size=0, mode=b"0000644", linkname=b"", mtime=b"00000000000", magic=b"ustar\x0000", prefix=b"", raw_size=None, checksum=None):
    """One tar header with any bytes in any field."""
    block = bytearray(BLOCK)
    block[0 : len(name)] = name
    block[100 : 100 + len(mode)] = mode
    block[108:115] = block[116:123] = b"0000000"
    size_field = b"%011o\0" % size if raw_size is None else raw_size
    block[124 : 124 + len(size_field)] = size_field
    block[136 : 136 + len(mtime)] = mtime
    block[156:157] = type
    block[157 : 157 + len(linkname)] = linkname
    block[257 : 257 + len(magic)] = magic
    block[345 : 345 + len(prefix)] = prefix
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block) if checksum is None else checksum
    return bytes(block)


def padded(data):
    return data + b"\0" * (-len(data) % BLOCK)


def entry(name=b"a", data=b"", **fields):
    return header(name, size=len(data), **fields) + padded(data)


def record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


def pax(*records, type=b"x"):
    data = b"".join(record(key, value) for key, value in records)
    return entry(b"pax", data, type=type)


def gnu(name, type=b"L"):
    return entry(b"././@LongLink", name + b"\0", type=type, magic=b"ustar  \0")


END = b"\0" * (2 * BLOCK)


def tar(*parts):
    return b"".join(parts) + END


def packed(*parts):
    return gzip.compress(tar(*parts), mtime=0)


def listing(top):
    """Everything below a directory, so that two listings are equal only when nothing has changed."""
    found = {}
    for directory, names, files in os.walk(os.fsencode(top)):
        for name in names + files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            what = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink]
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    what.append(hashlib.sha256(file.read()).hexdigest())
            elif stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            found[os.path.relpath(path, os.fsencode(top))] = what
    return found


def contents(data):
    """name -> (type, content or target) of an archive, as Python reads it."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            content = archive.extractfile(member).read() if member.isreg() else member.linkname
            found[member.name] = (member.type, content)
    return found
