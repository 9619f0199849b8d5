"""Checks messages against the JSON Schema that the program itself prints (`--print-schema`).

Needs python3-jsonschema."""

import functools
import json
import subprocess

import jsonschema


@functools.lru_cache(maxsize=None)
def printed_schema(program):
    printed = subprocess.run([program, "--print-schema"], check=True, stdout=subprocess.PIPE, timeout=60)
    return json.loads(printed.stdout)


class Validator:
    """Every method returns a list of sentences, empty when the message keeps to the schema."""

    def __init__(self, document):
        jsonschema.Draft202012Validator.check_schema(document)
        self.document = document
        self.methods = method_table(document)
        self.errors = {entry["reason"]: entry for entry in error_table(document)}
        self._validators = {}

    def request(self, message):
        return self._body(message.get("method"), "params", message.get("params", {}))

    def notification(self, message):
        problems = self._body(message["method"], "params", message.get("params", {}))
        entry = self.methods.get(message["method"])
        if entry and (entry["kind"] != "notification" or entry["from"] != "server"):
            problems.append(f"{message['method']} is no notification of the server")
        return problems + self._envelope(message, {"jsonrpc", "method", "params"})

    def reply(self, method, message):
        if "error" in message:
            return self._error(method, message["error"]) + self._envelope(message, {"jsonrpc", "id", "error"})
        problems = self._envelope(message, {"jsonrpc", "id", "result"})
        return problems + (self._body(method, "result", message.get("result")) if method else [])

    def _envelope(self, message, allowed):
        problems = [] if message.get("jsonrpc") == "2.0" else [f"jsonrpc is {message.get('jsonrpc')!r}"]
        return problems + [f"unexpected member {name!r}" for name in message.keys() - allowed]

    def _body(self, method, part, value):
        entry = self.methods.get(method)
        if entry is None:
            return [f"{method} is not in the printed schema"]
        reference = entry.get(part)
        if reference is None:
            return [f"{method} has no {part} in the printed schema"]
        found = self._validator(reference).iter_errors(value)
        return [f"{method} {part} {'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in found]

    def _validator(self, reference):
        reference = reference["$ref"] if isinstance(reference, dict) else reference
        if reference not in self._validators:
            self._validators[reference] = jsonschema.Draft202012Validator(
                {"$ref": reference, "$defs": self.document["$defs"]}
            )
        return self._validators[reference]

    def _error(self, method, error):
        data = error.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("reason"), str):
            return [f"an error without data.reason: {error}"]
        problems = [
            f"error data has an unknown member {name!r}"
            for name in data.keys() - {"reason", "path", "errno", "step", "hint", "retryable", "details"}
        ]
        entry = self.errors.get(data["reason"])
        if entry is None:
            problems.append(f"reason {data['reason']!r} is not in the printed schema")
        elif entry["code"] != error.get("code"):
            problems.append(f"reason {data['reason']!r} came with code {error.get('code')}, not {entry['code']}")
        elif entry["code"] > 0 and method in self.methods and data["reason"] not in self.methods[method]["errors"]:
            problems.append(f"{method} does not list reason {data['reason']!r}")
        if not isinstance(data.get("retryable"), bool):
            problems.append(f"an error without data.retryable: {error}")
        if not error.get("message"):
            problems.append(f"an error without a sentence: {error}")
        return problems


def method_table(document):
    """x-methods as {name: entry}."""
    return named(document["x-methods"], "name")


def error_table(document):
    """x-errors as a list of {reason, code, ...}."""
    return list(named(document["x-errors"], "reason").values())


def named(table, key):
    """The tables may be lists of entries or objects by name."""
    entries = table if isinstance(table, list) else [{key: name, **entry} for name, entry in table.items()]
    return {entry[key]: entry for entry in entries}
