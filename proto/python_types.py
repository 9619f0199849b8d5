"""The schema as a Python module: types of what the sidecar answers, and the rules that the Python package checks its
options with."""

REF = "#/$defs/"
# Whose fields the package checks before it sends them. What a build does not have yet, the build itself refuses.
CHECKED = (
    "SessionOpenParams",
    "RunCodeParams",
    "RunArgvParams",
    "KernelOpenParams",
    "KernelRunParams",
    "SessionSetupParams",
    "RenderOptions",
)
RULES = (
    "type",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "x-maxBytes",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
)
PLAIN = {"string": "str", "integer": "int", "boolean": "bool", "object": "Dict[str, Any]"}
HEADER = '''"""Made by proto/generate.py from the tables in proto/; do not edit."""

from typing import Any, Dict, List, Mapping, TypedDict, Union

VERSION = {version}
'''


def type_of(field):
    """A type that mypy and Python 3.9 read."""
    if "anyOf" in field:
        return "Union[" + ", ".join(type_of(one) for one in field["anyOf"]) + "]"
    if "$ref" in field:
        return f'"{field["$ref"][len(REF):]}"'
    kind = field.get("type")
    if isinstance(kind, list):
        return "Union[" + ", ".join(type_of({"type": one}) for one in kind) + "]"
    if kind == "array":
        return f"List[{type_of(field['items'])}]"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"Dict[str, {type_of(field['additionalProperties'])}]"
    return PLAIN.get(kind, "Any")


def named_type(name, definition):
    """A TypedDict; its fields may all be absent, `required` of the schema says which are not."""
    if "anyOf" in definition:
        return [f"{name} = {type_of(definition)}"]
    fields = definition.get("properties", {})
    lines = [f"class {name}(TypedDict, total=False):", f'    """{definition["description"]}"""', ""]
    lines += [f"    {field}: {type_of(rules)}" for field, rules in fields.items()]
    return lines


def is_answer(name):
    return not name.endswith("Params") and name != "Text"


def words_of(definition, field):
    return tuple(definition["properties"][field].get("examples", []))


def literal(value, indent=""):
    """A dict of dicts, one member a line, so that a change is one line of a diff."""
    if isinstance(value, dict) and indent != "        ":
        inner = indent + "    "
        return (
            "{\n" + "".join(f"{inner}{key!r}: {literal(item, inner)},\n" for key, item in value.items()) + indent + "}"
        )
    return repr(value)


def rules_of(definition):
    return {
        name: {rule: field[rule] for rule in RULES if rule in field} for name, field in definition["properties"].items()
    }


def module(schema):
    definitions = schema["$defs"]
    out = [HEADER.format(version=schema["x-protocolVersion"])]
    out.append("# In the order in which one hides another; more may come.")
    out.append(f"FAULT_TYPES = {words_of(definitions['Fault'], 'type')!r}")
    out.append(f"FILE_CHANGES = {words_of(definitions['ChangedFile'], 'change')!r}")
    out.append(f"RESULT_KINDS = {words_of(definitions['RichResult'], 'kind')!r}")
    out.append(f"CELL_STATUSES = {words_of(definitions['KernelRunResult'], 'cellStatus')!r}")
    out.append("# reason -> code of an error")
    out.append(f"REASONS = {literal({e['reason']: e['code'] for e in schema['x-errors']})}")
    out.append("# reasons of errors after which the same request may work")
    out.append(f"RETRYABLE = {tuple(e['reason'] for e in schema['x-errors'] if e['retryable'])!r}")
    out.append("# message -> field -> what its value has to be")
    rules = {name: rules_of(definitions[name]) for name in CHECKED}
    out.append(f"RULES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {literal(rules)}")
    out.append("# field -> its default, as the sidecar has it")
    fields = definitions["SessionOpenParams"]["properties"]
    defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
    out.append(f"SESSION_DEFAULTS: Mapping[str, Any] = {literal(defaults)}")
    out.append(f"\nText = {type_of(definitions['Text'])}")
    for name, definition in definitions.items():
        if is_answer(name):
            out.append("\n\n" + "\n".join(named_type(name, definition)))
    return "\n".join(out) + "\n"
