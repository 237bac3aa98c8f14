"""Reads the tables of tests/golden/validation and what the API server says about a refused job."""

import copy
import json
import pathlib
import re

TABLES = pathlib.Path(__file__).resolve().parents[2] / "golden" / "validation"
TOPICS = ("replicas", "template", "elastic", "run_policy", "name")


def read(name):
    return json.loads((TABLES / f"{name}.json").read_text())


def merged(target, patch):
    """RFC 7386: the target with the patch applied; the target itself stays."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def job(patch=None):
    """The base job with a patch applied."""
    return merged(read("base"), patch or {})


def refusal(error):
    """Path -> messages of a 422.

    Under "<nil>" the API server says that an integer is out of range, with the path at the end, and
    that it did not get as far as the rules. Under paths with a leading dot the scale subresource
    complains of what the schema does already. Rules on map values have paths such as
    pytorchReplicaSpecs[Worker].
    """
    assert error.status == 422, error.body
    found = {}
    for cause in json.loads(error.body)["details"]["causes"]:
        path, message = cause.get("field", ""), cause["message"]
        if out_of_range := re.search(r"Checked value must be .* in (spec\.\S+)$", message):
            path = out_of_range.group(1)
        if path != "<nil>" and not path.startswith("."):
            path = re.sub(r"\[([A-Za-z]+)\]", r".\1", path)
            found.setdefault(path, []).append(message)
    return found
