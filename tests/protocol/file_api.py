"""What the tests of the file methods share: a session with short calls, and what a reply's content is."""

import base64
import os

import pytest

from expect import refused


class Files:
    """The file methods in one session: `files.write("a", content="x")`, `files.refused("read", "not_found", path="a")`."""

    def __init__(self, client, **params):
        self.client = client
        self.opened = client.call("session/open", params)
        self.session, self.workspace = self.opened["sessionId"], self.opened["workspace"]

    def call(self, method, path=None, timeout=60, **params):
        where = {} if path is None else self.name(path)
        return self.client.call(f"file/{method}", {"sessionId": self.session, **where, **params}, timeout)

    def refused(self, method, reason, path=None, field="/path", **params):
        where = {} if path is None else self.name(path)
        error = self.client.fail(f"file/{method}", {"sessionId": self.session, **where, **params})
        refused(error, reason, field + "Base64" if field == "/path" and isinstance(path, bytes) else field)
        return error

    @staticmethod
    def name(path):
        return {"pathBase64": base64.b64encode(path).decode()} if isinstance(path, bytes) else {"path": path}

    def content(self, reply):
        """The bytes of a reply of file/read."""
        if "text" in reply:
            return reply["text"].encode()
        return self.client.text(reply)

    def read(self, path, **params):
        return self.call("read", path, **params)

    def bytes(self, path, **params):
        return self.content(self.read(path, **params))

    def write(self, path, content, **params):
        if isinstance(content, bytes):
            content = {"base64": base64.b64encode(content).decode()}
        return self.call("write", path, content=content, **params)

    def stat(self, path, **params):
        return self.call("stat", path, **params)

    def edit(self, path, *edits, **params):
        return self.call("edit", path, edits=[as_edit(e) for e in edits], **params)

    def pages(self, path=None, **params):
        """The entries of all pages, one list a page."""
        pages, cursor = [], {}
        while True:
            reply = self.call("list", path, **params, **cursor)
            pages.append(self.entries(reply))
            if "nextCursor" not in reply:
                return pages
            cursor = {"cursor": reply["nextCursor"]}

    def entries(self, reply):
        import json

        entries = reply["entries"]
        return json.loads(self.client.text(entries)) if isinstance(entries, dict) else entries

    def names(self, path=None, **params):
        return [path_of(entry) for page in self.pages(path, **params) for entry in page]

    def sh(self, script, **params):
        result = self.client.run("sh", "-c", script, sessionId=self.session, **params)
        assert result["exitCode"] == 0, result
        return result["stdout"]

    def python(self, code, **params):
        result = self.client.run("python3", "-c", code, sessionId=self.session, **params)
        assert result["exitCode"] == 0, result
        return result["stdout"]

    def host(self, *names):
        return os.path.join(self.workspace, *names)


def as_edit(edit):
    old, new, *rest = edit
    return {"oldText": old, "newText": new, **({"all": True} if rest else {})}


def path_of(entry):
    return base64.b64decode(entry["pathBase64"]) if "pathBase64" in entry else entry["path"]


@pytest.fixture
def files(client):
    return Files(client)
