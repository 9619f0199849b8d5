"""Trees of files for the tests of file/glob and file/search."""

import base64
import json
import os


def write_tree(top, files, owner):
    """{path: content}; a path that ends with a slash is a directory. Everything belongs to the sidecar's user."""
    top = os.fsencode(top)
    for path, content in files.items():
        where = os.path.join(top, os.fsencode(path))
        if where.endswith(b"/"):
            os.makedirs(where, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    for directory, _, names in os.walk(top):
        for name in [b".", *names]:
            os.chown(os.path.join(directory, name), owner.pw_uid, owner.pw_gid, follow_symlinks=False)


class Tree:
    """A session on a workspace that the test fills itself."""

    def __init__(self, client, top, owner):
        self.client, self.top, self.owner = client, top, owner
        self.session = client.call("session/open", {"workspace": top})["sessionId"]

    def write(self, files):
        write_tree(self.top, files, self.owner)

    def call(self, method, **params):
        result = self.client.call(method, {"sessionId": self.session, **params})
        for name in ("entries", "matches"):
            if isinstance(result.get(name), dict):
                result[name] = json.loads(self.client.text(result[name]))
        return result

    def fail(self, method, **params):
        return self.client.fail(method, {"sessionId": self.session, **params})

    def glob(self, pattern, **params):
        result = self.call("file/glob", pattern=pattern, **params)
        assert not result["truncated"]
        return [name_of(entry) for entry in result["entries"]]

    def search(self, pattern, **params):
        """[(path, line, column, text)]"""
        result = self.call("file/search", pattern=pattern, **params)
        assert not result["truncated"]
        return [(name_of(match), match["line"], match["column"], match["text"]) for match in result["matches"]]


def name_of(entry):
    """Of an entry or a match, as os.fsdecode() has it."""
    return entry["path"] if "path" in entry else os.fsdecode(base64.b64decode(entry["pathBase64"]))
