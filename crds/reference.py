#!/usr/bin/env python3
"""Makes docs/job-reference.md from source/: every field of a PyTorchJob, its values, the rules.

Without arguments it rewrites the file; with --check it only says whether the file is up to date.
"""

import argparse
import pathlib
import sys

import generate

TARGET = generate.HERE.parent / "docs" / "job-reference.md"

# What Kubernetes documents itself: shown as one row.
KUBERNETES = {
    "io.k8s.api.core.v1.PodTemplateSpec": "PodTemplateSpec",
    "io.k8s.api.autoscaling.v2.MetricSpec": "MetricSpec of autoscaling/v2",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": "LabelSelector",
}

HEAD = """<!-- Made by crds/reference.py from crds/source/; do not edit. -->
# PyTorchJob, field by field

`apiVersion: kubeflow.org/v1`, `kind: PyTorchJob`. The same is shown by
`kubectl explain pytorchjob --recursive`. A field that is not listed here, nor in a pod template, is
dropped by the API server; `kubectl apply --validate=strict` refuses it instead.
"""


def with_files(node):
    """The source with its files put together, Kubernetes' types left as they are named."""
    if isinstance(node, list):
        return [with_files(child) for child in node]
    if not isinstance(node, dict):
        return node
    if "$file" in node:
        return with_files(generate.source(node["$file"]))
    return {key: with_files(child) for key, child in node.items()}


def type_of(node):
    """The type of a field in words, with its range or values."""
    if "$kubernetes" in node:
        return KUBERNETES[node["$kubernetes"]]
    if "enum" in node:
        return " \\| ".join(f"`{value}`" for value in node["enum"] if value)
    if "items" in node:
        return f"list of {type_of(node['items'])}"
    if "additionalProperties" in node:
        return f"map of {type_of(node['additionalProperties'])}"
    text = "time" if node.get("format") == "date-time" else node["type"]
    if "minimum" in node and "maximum" in node:
        return f"{text}, {node['minimum']} to {node['maximum']}"
    if "minimum" in node:
        return f"{text}, at least {node['minimum']}"
    return text


def rows(node, prefix):
    """Path, type and description of every field below a node."""
    for name, child in node.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, type_of(child), child["description"]
        inner = child
        if "additionalProperties" in child:
            inner, path = child["additionalProperties"], f"{path}.<Type>"
        elif "items" in child:
            inner, path = child["items"], f"{path}[]"
        if "$kubernetes" not in inner:
            yield from rows(inner, f"{path}.")


def escaped(text):
    """Text for a cell of a Markdown table."""
    return text.replace("<", "&lt;").replace("|", "\\|")


def table(node, prefix):
    lines = ["| field | type | |", "| --- | --- | --- |"]
    lines += [f"| `{path}` | {kind} | {escaped(text)} |" for path, kind, text in rows(node, prefix)]
    return "\n".join(lines)


def rules(node, path=""):
    """Path and message of every CEL rule."""
    for rule in node.get("x-kubernetes-validations", []):
        yield (path + rule.get("fieldPath", "")).removeprefix("."), rule["message"]
    for name, child in node.get("properties", {}).items():
        yield from rules(child, f"{path}.{name}")
    for key, step in (("items", "[]"), ("additionalProperties", ".<Type>")):
        if isinstance(node.get(key), dict):
            yield from rules(node[key], path + step)


def rendered():
    """The text of docs/job-reference.md."""
    version = with_files(generate.source("pytorchjob.yaml"))["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    fields = schema["properties"]
    columns = [
        f"| {column['name'].upper()} | {'`-o wide`' if column.get('priority') else ''} "
        f"| `{column['jsonPath']}` | {column.get('description', '')} |"
        for column in version["additionalPrinterColumns"]
    ]
    checks = [f"| `{path}` | {escaped(message)} |" for path, message in rules(schema)]
    return "\n".join(
        [
            HEAD,
            "## Spec",
            table(fields["spec"], "spec."),
            "",
            "## Status",
            table(fields["status"], "status."),
            "",
            "## Columns of kubectl get",
            "| column | | from | |",
            "| --- | --- | --- | --- |",
            *columns,
            "",
            "## Rules",
            "Besides types, ranges and values above, the API server refuses a job, and the operator",
            "fails one that was stored before, when one of these does not hold. The rules that speak of",
            "a change are the API server's alone.",
            "",
            "| field | rule |",
            "| --- | --- |",
            *checks,
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if outdated")
    options = parser.parse_args()
    text = rendered()
    if not options.check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        sys.exit(f"{pathlib.Path('docs', TARGET.name)} is outdated: run crds/reference.py")


if __name__ == "__main__":
    main()
