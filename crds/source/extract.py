#!/usr/bin/env python3
"""Extracts the Kubernetes types that a PyTorchJob embeds into kubernetes-openapi.json.

Needs Go and network: the OpenAPI document comes with the Go module k8s.io/kubernetes. Run it to
move to another Kubernetes version, then run ../generate.py; generation itself needs no network.
The extract keeps the first sentence of each description (Kubernetes, Apache License 2.0).
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile

ROOTS = ("io.k8s.api.core.v1.PodTemplateSpec", "io.k8s.api.autoscaling.v2.MetricSpec")
KEPT = {
    "type", "format", "properties", "items", "additionalProperties", "required", "description",
    "$ref", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}
# ObjectMeta is written by hand in the template: only what a pod template can pass on.
LEFT_OUT = {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}


def first_sentence(text):
    """Up to the first full stop that ends a sentence; white space as single spaces."""
    text = re.split(r"\n\s*\n|\n\s*-", text, maxsplit=1)[0]
    text = " ".join(text.split())
    text = re.split(r"\s*More info:", text, maxsplit=1)[0]
    for match in re.finditer(r"\.(?=\s+[A-Z\"`(])", text):
        if not re.search(r"\b(e\.g|i\.e|etc|vs)$", text[: match.start()]):
            return text[: match.end()]
    return text


def reduced(schema):
    """The schema with only what a CRD can say."""
    result = {}
    for key, value in schema.items():
        if key not in KEPT:
            continue
        if key == "description":
            result[key] = first_sentence(value)
        elif key == "properties":
            result[key] = {name: reduced(child) for name, child in value.items()}
        elif isinstance(value, dict):
            result[key] = reduced(value)
        elif key == "$ref":
            result[key] = value.rsplit("/", 1)[-1]
        else:
            result[key] = value
    return result


def references(schema):
    """Names of all types that the schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for value in schema.values():
            yield from references(value)


def document(version):
    """The OpenAPI document of a Kubernetes release, from its Go module."""
    with tempfile.TemporaryDirectory() as empty:
        module = json.loads(
            subprocess.check_output(
                ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"], cwd=empty
            )
        )
    path = pathlib.Path(module["Dir"]) / "api" / "openapi-spec" / "swagger.json"
    return json.loads(path.read_text())["definitions"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubernetes-version", default="v1.36.3")
    options = parser.parse_args()
    definitions = document(options.kubernetes_version)
    extract, wanted = {}, list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name in extract or name in LEFT_OUT:
            continue
        extract[name] = reduced(definitions[name])
        wanted += references(extract[name])
    target = pathlib.Path(__file__).with_name("kubernetes-openapi.json")
    target.write_text(
        json.dumps(
            {"kubernetes": options.kubernetes_version, "definitions": dict(sorted(extract.items()))},
            indent=1,
        )
        + "\n"
    )
    print(f"{target.name}: {len(extract)} types of Kubernetes {options.kubernetes_version}")


if __name__ == "__main__":
    main()
