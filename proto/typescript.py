"""The schema as TypeScript declarations, and as the tables that the Node package checks its options with."""
import json

REF = "#/$defs/"
# Whose fields the Node package checks before it sends them. What a build does not have yet, the build itself refuses.
CHECKED = ("SessionParams", "SessionSetupParams", "RunCodeParams", "RunArgvParams", "KernelOpenParams", "KernelRunParams",
           "ShellOpenParams", "ShellRunParams")
RULES = ("type", "enum", "minimum", "maximum", "minLength", "pattern", "maxItems", "minItems", "maxProperties",
         "x-maxBytes")
HEADER = "// Made by proto/generate.py from the tables in proto/; do not edit.\n"


def type_of(field):
    if "anyOf" in field:
        return " | ".join(type_of(one) for one in field["anyOf"])
    if "$ref" in field:
        return field["$ref"].removeprefix(REF)
    if "enum" in field:
        return " | ".join(json.dumps(word) for word in field["enum"])
    if "examples" in field and field.get("type") == "string":
        return " | ".join(json.dumps(word) for word in field["examples"]) + " | (string & {})"
    kind = field.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({"type": one}) for one in kind)
    if kind == "array":
        item = type_of(field["items"])
        return f"({item})[]" if " " in item else f"{item}[]"
    if kind == "object":
        values = field.get("additionalProperties")
        return f"Record<string, {type_of(values) if isinstance(values, dict) else 'unknown'}>"
    return {"integer": "number", "string": "string", "boolean": "boolean"}.get(kind, "unknown")


def comment(text, indent=""):
    return f"{indent}/** {text.replace('*/', '* /')} */"


def facts_of(field):
    facts = [field["description"]]
    if "default" in field:
        facts.append(f"Default: {json.dumps(field['default'])}.")
    if "minimum" in field and "maximum" in field:
        facts.append(f"{field['minimum']} to {field['maximum']}{' ' + field['x-unit'] if 'x-unit' in field else ''}.")
    if field.get("x-relaxes"):
        facts.append("Can weaken the isolation.")
    return " ".join(facts)


def interface(name, schema):
    lines = [comment(schema["description"]), f"export interface {name} {{"]
    for field_name, field in schema["properties"].items():
        optional = "" if field_name in schema["required"] else "?"
        if "description" in field:
            lines.append(comment(facts_of(field), "  "))
        lines.append(f"  {field_name}{optional}: {type_of(field)};")
    return lines + ["}", ""]


def declarations(schema):
    out = [HEADER]
    for name, definition in schema["$defs"].items():
        if name == "Text":
            out += [comment(definition["description"]), f"export type Text = {type_of(definition)};", ""]
        elif name == "BlobText":
            out += [comment(definition["description"]), "export interface BlobText {",
                    "  blob: { id: string; bytes?: number; sha256?: string; mime?: string };", "}", ""]
        else:
            out += interface(name, definition)
    for title, kind, text in (("Requests", "request", "Every request."), ("Notifications", "notification", "Every notification.")):
        out += [comment(text), f"export interface {title} {{"]
        for method in schema["x-methods"]:
            if method["kind"] == kind:
                result = f"; result: {type_of(method['result'])}" if "result" in method else ""
                out.append(f"  {json.dumps(method['name'])}: {{ params: {type_of(method['params'])}{result} }};")
        out += ["}", ""]
    reasons = " | ".join(json.dumps(error["reason"]) for error in schema["x-errors"])
    out += [comment("Why a request had no effect. The list is open."), f"export type ErrorReason = {reasons} | (string & {{}});"]
    return "\n".join(out) + "\n"


def rules(field):
    """What a value has to be, without what is for people."""
    kept = {name: field[name] for name in RULES if name in field}
    if "$ref" in field:
        kept["ref"] = field["$ref"].removeprefix(REF)
    for part in ("items", "additionalProperties", "propertyNames"):
        if isinstance(field.get(part), dict):
            kept[part] = rules(field[part])
    return kept


def tables(schema):
    checked = {name: {field: rules(rule) for field, rule in schema["$defs"][name]["properties"].items()} for name in CHECKED}
    mount = {field: rules(rule) for field, rule in schema["$defs"]["Mount"]["properties"].items()}
    out = [HEADER + "'use strict';\n", f"exports.VERSION = {schema['x-protocolVersion']};\n", "exports.fields = {"]
    for name, fields in {**checked, "Mount": mount}.items():
        out.append(f"  {name}: {{")
        out += [f"    {field}: {json.dumps(rule)}," for field, rule in fields.items()]
        out.append("  },")
    return "\n".join(out + ["};"]) + "\n"
