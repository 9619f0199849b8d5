"""Packages for the tests of session/setup, made here: a wheel for pip, a tarball for npm."""

import base64
import hashlib
import io
import json
import os
import tarfile
import zipfile


def wheel(directory, name, version="1.0", files=None, scripts=None):
    """Writes a wheel of pure Python: files is {path: text}, scripts {command: "module:function"}."""
    info = f"{name}-{version}.dist-info"
    content = {f"{name}.py": f"version = {version!r}\n"} if files is None else dict(files)
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if scripts:
        lines = "".join(f"{command} = {entry}\n" for command, entry in scripts.items())
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{lines}"
    record = ""
    for path, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    content[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = os.path.join(directory, f"{name}-{version}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in content.items():
            archive.writestr(member, text)
    os.chmod(path, 0o644)


def tarball(directory, name, version="1.0.0"):
    """Writes NAME-VERSION.tgz, whose export is a function that doubles."""
    files = {
        "package.json": json.dumps({"name": name, "version": version, "main": "index.js", "bin": {name: "cli.js"}}),
        "index.js": "module.exports = (x) => 2 * x;\n",
        "cli.js": "#!/usr/bin/env node\nconsole.log('cli of ' + require('./package.json').name);\n",
    }
    path = os.path.join(directory, f"{name}-{version}.tgz")
    with tarfile.open(path, "w:gz") as archive:
        for member, text in files.items():
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    os.chmod(path, 0o644)
