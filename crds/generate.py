#!/usr/bin/env python3
"""Makes kubeflow.org_pytorchjobs.yaml from source/pytorchjob.yaml and Kubernetes' own types.

Without arguments it rewrites the file; with --check it only says whether the file is up to date.
"""

import argparse
import copy
import json
import pathlib
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "kubeflow.org_pytorchjobs.yaml"

# Client-side apply keeps the whole object as compact JSON in an annotation; all annotations of an
# object together may have 256 KiB.
MAX_BYTES = 256 * 1024

# Longest description taken over from Kubernetes, in characters.
MAX_DESCRIPTION = 120

QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
INT_OR_STRING = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    # Of an embedded template's metadata only what it can pass on, and what tools write as null.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "description": "Labels, annotations and finalizers of what the template makes.",
        "properties": {
            "annotations": {
                "type": "object",
                "description": "Annotations of what the template makes.",
                "additionalProperties": {"type": "string"},
            },
            "labels": {
                "type": "object",
                "description": "Labels of what the template makes.",
                "additionalProperties": {"type": "string"},
            },
            "finalizers": {
                "type": "array",
                "description": "Finalizers of what the template makes.",
                "items": {"type": "string"},
            },
            "name": {"type": "string", "description": "Not used: names are made."},
            "generateName": {"type": "string", "description": "Not used: names are made."},
            "namespace": {"type": "string", "description": "Not used: the job's is taken."},
            "creationTimestamp": {
                "type": "string",
                "format": "date-time",
                "description": "Not used: tools write it as null.",
            },
        },
    },
}

# Types whose description above says more than Kubernetes' description of the field.
OWN_WORDS = {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}

# Keys of list-type map must be required or have a default. Only these two are neither in
# Kubernetes' OpenAPI; the values are those that Kubernetes itself assumes.
KEY_DEFAULTS = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
}


def shortened(text):
    """At most MAX_DESCRIPTION characters, cut between words."""
    if len(text) <= MAX_DESCRIPTION:
        return text
    return text[: MAX_DESCRIPTION - 2].rsplit(" ", 1)[0].rstrip(" ,;:(") + " …"


class Types:
    """Kubernetes' types as structural schemas: references resolved, descriptions shortened."""

    def __init__(self, definitions):
        self._definitions = definitions

    def schema(self, name):
        """The structural schema of a named type."""
        if name in SPECIAL:
            schema = copy.deepcopy(SPECIAL[name])
            if "description" not in schema:
                schema["description"] = shortened(self._definitions[name]["description"])
            return schema
        return self._structural(self._definitions[name])

    def _structural(self, node):
        if "$ref" in node:
            schema = self.schema(node["$ref"])
            if "description" in node and node["$ref"] not in OWN_WORDS:
                schema["description"] = shortened(node["description"])
            return schema
        schema = dict(node)
        if "description" in schema:
            schema["description"] = shortened(schema["description"])
        if "properties" in node:
            schema["properties"] = {k: self._structural(v) for k, v in node["properties"].items()}
        for key in ("items", "additionalProperties"):
            if key in node:
                schema[key] = self._structural(node[key])
                # `kubectl explain` shows the list's or map's own words, never its element's.
                schema[key].pop("description", None)
        if node.get("x-kubernetes-list-type") == "map":
            self._default_keys(schema, node)
        return schema

    @staticmethod
    def _default_keys(schema, node):
        element = node["items"].get("$ref")
        for key in node["x-kubernetes-list-map-keys"]:
            if (element, key) in KEY_DEFAULTS:
                schema["items"]["properties"][key]["default"] = KEY_DEFAULTS[(element, key)]


def merged(base, extra):
    """`base` with `extra` laid over it, deep; lists of required fields add up."""
    if not (isinstance(base, dict) and isinstance(extra, dict)):
        return extra
    result = dict(base)
    for key, value in extra.items():
        if key == "required" and key in base:
            result[key] = base[key] + [name for name in value if name not in base[key]]
        else:
            result[key] = merged(base[key], value) if key in base else value
    return result


def source(name):
    """A file of the hand-written source."""
    return yaml.safe_load((HERE / "source" / name).read_text())


def expanded(node, types):
    """The node with every `$file` and `$kubernetes` replaced by what it names."""
    if isinstance(node, list):
        return [expanded(child, types) for child in node]
    if not isinstance(node, dict):
        return node
    if "$file" in node:
        return expanded(source(node["$file"]), types)
    own = {k: expanded(v, types) for k, v in node.items() if k != "$kubernetes"}
    if "$kubernetes" in node:
        return merged(types.schema(node["$kubernetes"]), own)
    return own


def sorted_schema(node):
    """Keys in one order, so that the file changes only where its sources do."""
    if isinstance(node, dict):
        return {k: sorted_schema(node[k]) for k in sorted(node)}
    if isinstance(node, list):
        return [sorted_schema(child) for child in node]
    return node


def custom_resource_definition():
    """The whole CustomResourceDefinition, as a tree."""
    extract = json.loads((HERE / "source" / "kubernetes-openapi.json").read_text())
    tree = expanded(source("pytorchjob.yaml"), Types(extract["definitions"]))
    schema = tree["spec"]["versions"][0]["schema"]
    schema["openAPIV3Schema"] = sorted_schema(schema["openAPIV3Schema"])
    return tree


def compact_bytes(tree):
    """Size as the compact JSON that client-side apply stores."""
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":  # Go's encoder writes them as \u003c and so on
        text = text.replace(character, "\\u....")
    return len(text.encode())


class _Dumper(yaml.SafeDumper):
    """YAML without anchors, which other tools may not follow."""

    def ignore_aliases(self, data):
        return True


def rendered():
    """The text of kubeflow.org_pytorchjobs.yaml and its size as compact JSON."""
    tree = custom_resource_definition()
    size = compact_bytes(tree)
    if size >= MAX_BYTES:
        raise SystemExit(f"the CRD has {size} bytes as JSON, kubectl apply takes {MAX_BYTES}")
    text = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
    return "# Made by generate.py from source/; do not edit.\n" + text, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if outdated")
    options = parser.parse_args()
    text, size = rendered()
    if options.check:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET.name} is outdated: run crds/generate.py")
    else:
        TARGET.write_text(text)
    print(f"{TARGET.name}: {size} bytes as JSON of {MAX_BYTES}")


if __name__ == "__main__":
    main()
