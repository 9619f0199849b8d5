#!/usr/bin/env python3
"""Writes the reference page, or what the packages are made of, from the printed schema.

    kern-sidecar --print-schema | proto/generate.py > proto/REFERENCE.md
    proto/generate.py build/kern-sidecar --print-schema > proto/REFERENCE.md
    proto/generate.py --to=typescript < proto/kern.schema.json > integrations/node/lib/protocol.d.ts
    proto/generate.py --to=javascript < proto/kern.schema.json > integrations/node/lib/protocol.js
    proto/generate.py --to=python < proto/kern.schema.json > integrations/python/kern_sandbox/_protocol.py
"""
import json
import subprocess
import sys

import python_types
import typescript

REF = "#/$defs/"


def link(name):
    return f"[{name}](#{name.lower()})"


def type_of(field):
    """The type of a value in words, with links to the types that have a table."""
    if "anyOf" in field:
        return type_of(field["anyOf"][0]) + " or " + link("BlobText")
    if "$ref" in field:
        return link(field["$ref"].removeprefix(REF))
    kind = field.get("type", "any JSON")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return "array of " + type_of(field["items"])
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return "object of " + type_of(field["additionalProperties"]) + " values"
    return "base64 string" if field.get("contentEncoding") == "base64" else kind


def words(field):
    return ", ".join(f"`{word}`" for word in field.get("enum", field.get("examples", [])))


def rules_of(field):
    """Ranges, patterns, words: what a value has to be beyond its type."""
    inner = field["anyOf"][0] if "anyOf" in field else field
    unit = field.get("x-unit")
    rules = []
    if "enum" in inner:
        rules.append("one of " + words(inner))
    if "examples" in inner:
        rules.append("open: " + words(inner))
    if "minimum" in inner:
        rules.append(f"{inner['minimum']} to {inner['maximum']}" + (f" {unit}" if unit else ""))
    elif unit:
        rules.append(f"in {unit}")
    if "x-maxBytes" in inner:
        rules.append(f"at most {inner['x-maxBytes']} bytes")
    elif "maxLength" in inner:
        rules.append(f"at most {inner['maxLength']} bytes")
    for low, high, what in (("minItems", "maxItems", "items"), ("minProperties", "maxProperties", "members")):
        if high in inner:
            rules.append(f"{inner.get(low, 0)} to {inner[high]} {what}")
    if "pattern" in inner and inner.get("contentEncoding") != "base64":
        rules.append(f"matches `{inner['pattern']}`")
    items = inner.get("items", {}) if inner.get("type") == "array" else inner.get("additionalProperties", {})
    if isinstance(items, dict) and "x-maxBytes" in items:
        rules.append(f"each at most {items['x-maxBytes']} bytes")
    if isinstance(items, dict) and "pattern" in items:
        rules.append(f"each matches `{items['pattern']}`")
    if "pattern" in inner.get("propertyNames", {}):
        rules.append(f"names match `{inner['propertyNames']['pattern']}`")
    return rules


def notes_of(field):
    notes = [field["description"]]
    if field.get("x-relaxes"):
        notes.append("**Can weaken the isolation.**")
    if field.get("x-unsupported"):
        notes.append("*Not in this build.*")
    if field.get("x-onlyDefault"):
        notes.append("*Only the default in this build.*")
    if "x-unsupportedValues" in field:
        notes.append("*Not in this build: " + ", ".join(f"`{word}`" for word in field["x-unsupportedValues"]) + ".*")
    return " ".join(notes)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def fields_table(schema, out):
    if not schema["properties"]:
        out.append("No fields.\n")
        return
    out.append("| field | type | default | rules | |")
    out.append("|---|---|---|---|---|")
    for name, field in schema["properties"].items():
        if name in schema["required"]:
            default = "required"
        elif "default" in field:
            default = "`" + json.dumps(field["default"]) + "`"
        else:
            default = ""
        row = (f"`{name}`", type_of(field), default, "; ".join(rules_of(field)), notes_of(field))
        out.append("| " + " | ".join(cell(part) for part in row) + " |")
    out.append("")
    if "x-rule" in schema:
        out.append(schema["x-rule"] + "\n")


def method_section(method, out):
    out.append(f"### `{method['name']}`\n")
    facts = [f"{method['kind']} from the {method['from']}", f"{method['lane']} lane"]
    if method["beforeInitialize"]:
        facts.append("also before `initialize`")
    if not method["supported"]:
        facts.append("**not in this build**")
    line = ", ".join(facts)
    out.append(f"{method['description']} {line[0].upper()}{line[1:]}.\n")
    line = "Params: " + link(method["params"]["$ref"].removeprefix(REF))
    if "result" in method:
        line += ". Result: " + link(method["result"]["$ref"].removeprefix(REF))
    if method["errors"]:
        line += ". Errors: " + ", ".join(f"`{reason}`" for reason in method["errors"])
    out.append(line + ".\n")


def page(schema):
    out = [
        "# Reference of the kern-sidecar protocol\n",
        f"Version {schema['x-protocolVersion']}.{schema['x-protocolMinor']}. Made by `proto/generate.py` from the tables in"
        " `proto/`; do not edit. JSON-RPC 2.0, one object a line, UTF-8.\n",
        "Fields that are not listed are refused with `unknown_option`. A field or value marked *not in this build* is"
        " refused with `unsupported_option`, a method with `unknown_method`. Lengths count bytes of UTF-8.\n",
        "## Methods and notifications\n",
    ]
    for method in schema["x-methods"]:
        method_section(method, out)
    out.append("## Types\n")
    for name, definition in schema["$defs"].items():
        out.append(f"### {name}\n")
        out.append(definition["description"] + "\n")
        if name == "Text":
            out.append("A string, or " + link("Base64Text") + ", or " + link("BlobText") + ".\n")
        elif name == "Base64Text":
            out.append('`{"base64": "…"}`\n')
        elif name == "BlobText":
            out.append('`{"blob": {"id": "…", "bytes": 12, "sha256": "…", "mime": "…"}}`; only `id` counts in a request.\n')
        else:
            fields_table(definition, out)
    out.append("## Errors\n")
    out.append("| reason | code | retryable |\n|---|---|---|")
    for error in schema["x-errors"]:
        out.append(f"| `{error['reason']}` | {error['code']} | {'yes' if error['retryable'] else ''} |")
    return "\n".join(out) + "\n"


FORMS = {"reference": page, "python": python_types.module, "typescript": typescript.declarations, "javascript": typescript.tables}


def main():
    command = sys.argv[1:]
    form = command.pop(0).removeprefix("--to=") if command and command[0].startswith("--to=") else "reference"
    if command:
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    else:
        text = sys.stdin.buffer.read()
    sys.stdout.buffer.write(FORMS[form](json.loads(text)).encode())


if __name__ == "__main__":
    main()
