#!/usr/bin/env python3
"""Builds what `kustomize build` would, of the part of kustomize that these manifests use.

    deploy/kubernetes/build.py deploy/kubernetes/overlays/local                  the manifests, as YAML
    deploy/kubernetes/build.py --environments deploy/kubernetes/overlays/local   what each service is told, as JSON

Tests need the manifests as a cluster would get them, on machines that have no kustomize. The part: `resources`,
`configMapGenerator` (literals, files, merging, hashed names), `patches` (strategic merges, with or without a target),
`namespace`, `labels`, `images`, `replicas`. Everything else is refused: a field that is passed over here would make the
tests speak of other manifests than the cluster gets.

Needs PyYAML.
"""

import argparse
import copy
import hashlib
import json
import re
import sys
from pathlib import Path

import yaml

FIELDS = {"apiVersion", "kind", "resources", "configMapGenerator", "patches", "namespace", "labels", "images", "replicas"}

# Kinds that lie in no namespace, as far as they are used here.
CLUSTER_WIDE = {"Namespace"}

# Lists that a strategic merge merges by a field of their items; all other lists are replaced whole. The rule of Kubernetes'
# own types, by the name of the list; types that Kubernetes does not know (custom resources) have no such lists.
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "topologySpreadConstraints": "topologyKey",
}
# The same list has another key in other places.
PORT_KEYS = {"Service": "port"}


class Refused(Exception):
    """An error and its position."""


def build(folder):
    """The manifests of a folder, as a list of objects, in the order in which they were named."""
    objects = accumulate(Path(folder))
    rename_config_maps(objects)
    return objects


def accumulate(folder):
    """The objects of a folder and of all that it builds on, before names get their hashes."""
    file = folder / "kustomization.yaml"
    if not file.is_file():
        raise Refused(f"{folder} has no kustomization.yaml")
    told = yaml.safe_load(file.read_text()) or {}
    unknown = sorted(set(told) - FIELDS)
    if unknown:
        raise Refused(f"{file}: {', '.join(unknown)}: not of the part of kustomize that is built here; extend {Path(__file__).name}")

    objects = []
    for name in told.get("resources", []):
        path = folder / name
        if path.is_dir():
            found = accumulate(path)
        elif folder.resolve() in path.resolve().parents:
            found = [one for one in yaml.safe_load_all(path.read_text()) if one]
        else:
            raise Refused(f"{file}: {name}: kustomize reads files of its own folder only; name the folder of the other one")
        for one in found:
            if identity(one) in map(identity, objects):
                raise Refused(f"{path}: {' '.join(identity(one))} is there twice")
            objects.append(one)

    for generator in told.get("configMapGenerator", []):
        generate(objects, generator, folder)
    for patch in told.get("patches", []):
        apply_patch(objects, patch, folder)
    if "namespace" in told:
        for one in objects:
            if one["kind"] == "Namespace":
                one["metadata"]["name"] = told["namespace"]
            elif one["kind"] not in CLUSTER_WIDE:
                one["metadata"]["namespace"] = told["namespace"]
    for labels in told.get("labels", []):
        for one in objects:
            label(one, labels)
    for image in told.get("images", []):
        seen = [set_image(container, image) for one in objects for container in containers(one)]
        if not any(seen):
            raise Refused(f"{file}: no container has the image {image['name']}")
    for replicas in told.get("replicas", []):
        matching = [one for one in objects if one["kind"] in ("Deployment", "StatefulSet") and name_of(one) == replicas["name"]]
        if not matching:
            raise Refused(f"{file}: replicas: there is no {replicas['name']}")
        for one in matching:
            one["spec"]["replicas"] = replicas["count"]
    return objects


def identity(one):
    """The identity of an object."""
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def name_of(one):
    return one["metadata"]["name"]


def generate(objects, generator, folder):
    """Adds a ConfigMap, or merges into one of a folder below."""
    data = {}
    for literal in generator.get("literals", []):
        key, separator, value = literal.partition("=")
        if not separator:
            raise Refused(f"{folder}: literal {literal!r} has no =")
        data[key] = value
    for named in generator.get("files", []):
        key, _, path = named.rpartition("=")
        if "/" in path:
            raise Refused(f"{folder}: {path}: kustomize reads files of its own folder only")
        data[key or path] = (folder / path).read_text()
    below = [one for one in objects if one["kind"] == "ConfigMap" and name_of(one) == generator["name"]]
    behavior = generator.get("behavior", "create")
    if behavior == "merge" and below:
        below[0]["data"].update(data)
    elif behavior == "create" and not below:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}
        # Taken away again when the name has its hash.
        made["generated"] = True
        objects.append(made)
    else:
        raise Refused(f"{folder}: cannot {behavior} the ConfigMap {generator['name']}")


def apply_patch(objects, told, folder):
    """Merges a patch into the object that it names, or into all that its target describes."""
    text = told["patch"] if "patch" in told else (folder / told["path"]).read_text()
    for patch in yaml.safe_load_all(text):
        if "target" in told:
            target = told["target"]
            if set(target) - {"kind", "name", "labelSelector"}:
                raise Refused(f"{folder}: a target has kind, name and labelSelector only")
            chosen = [one for one in objects if is_target(one, target)]
        else:
            chosen = [one for one in objects if one["kind"] == patch["kind"] and name_of(one) == name_of(patch)]
        if not chosen:
            raise Refused(f"{folder}: a patch concerns nothing: {told.get('target') or identity(patch)}")
        for one in chosen:
            if patch.get("$patch") == "delete":
                objects.remove(one)
                continue
            # Whom it concerns is not what it changes.
            change = {key: value for key, value in patch.items() if key not in ("apiVersion", "kind")}
            change["metadata"] = {key: value for key, value in patch.get("metadata", {}).items() if key != "name"}
            merged = merge(one, change, one["kind"])
            one.clear()
            one.update(merged)


def is_target(one, target):
    labels = one["metadata"].get("labels", {})
    wanted = [pair.split("=") for pair in target.get("labelSelector", "").split(",") if pair]
    return (
        target.get("kind", one["kind"]) == one["kind"]
        and re.fullmatch(target.get("name", ".*"), name_of(one)) is not None
        and all(labels.get(key) == value for key, value in wanted)
    )


def merge(old, change, kind):
    """A strategic merge of two maps."""
    if change.get("$patch") == "replace":
        return {key: value for key, value in change.items() if key != "$patch"}
    merged = copy.deepcopy(old)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value, kind)
        elif isinstance(value, list) and isinstance(merged.get(key), list) and merge_key(key, kind):
            merged[key] = merge_lists(merged[key], value, merge_key(key, kind), kind)
        else:
            merged[key] = strip(value)
    return merged


def merge_key(name, kind):
    return PORT_KEYS.get(kind, "containerPort") if name == "ports" else MERGE_KEYS.get(name)


def merge_lists(old, change, by, kind):
    """Merges items of the same key in place; new ones go to the end."""
    merged = copy.deepcopy(old)
    for item in change:
        at = next((n for n, one in enumerate(merged) if one.get(by) == item.get(by)), None)
        if item.get("$patch") == "delete":
            if at is not None:
                merged.pop(at)
        elif at is None:
            merged.append(strip(item))
        else:
            merged[at] = merge(merged[at], item, kind)
    return merged


def strip(value):
    """A new value, without directives that remove anything."""
    if isinstance(value, dict):
        return {key: strip(inner) for key, inner in value.items() if inner is not None and key != "$patch"}
    if isinstance(value, list):
        return [strip(inner) for inner in value]
    return value


def label(one, told):
    """Adds labels; to the template of a workload, and to selectors, where that is said."""
    if set(told) - {"pairs", "includeSelectors", "includeTemplates"}:
        raise Refused("labels have pairs, includeSelectors and includeTemplates only")
    pairs = told["pairs"]
    one["metadata"].setdefault("labels", {}).update(pairs)
    template = one.get("spec", {}).get("template") if one["kind"] in ("Deployment", "StatefulSet") else None
    if template and (told.get("includeTemplates") or told.get("includeSelectors")):
        template["metadata"].setdefault("labels", {}).update(pairs)
    if told.get("includeSelectors"):
        if template:
            one["spec"]["selector"].setdefault("matchLabels", {}).update(pairs)
        elif one["kind"] == "Service" and one["spec"].get("selector"):
            one["spec"]["selector"].update(pairs)


def pods(one):
    """The specifications of the pods that an object makes."""
    if one["kind"] in ("Deployment", "StatefulSet"):
        yield one["spec"]["template"]["spec"]


def containers(one):
    """All containers of the pods that an object makes."""
    for pod in pods(one):
        yield from pod.get("initContainers", [])
        yield from pod["containers"]


def set_image(container, told):
    if set(told) - {"name", "newName", "newTag", "digest"}:
        raise Refused("images have name, newName, newTag and digest only")
    name, tag, digest = image_parts(container["image"])
    if name != told["name"]:
        return False
    name = told.get("newName", name)
    if "digest" in told:
        container["image"] = f"{name}@{told['digest']}"
    else:
        tag = told.get("newTag", tag)
        container["image"] = name + (f":{tag}" if tag else "") + (f"@{digest}" if digest and "newTag" not in told else "")
    return True


def image_parts(image):
    """Name, tag and digest. A colon before the last slash is that of a port."""
    rest, _, digest = image.partition("@")
    folder, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    return folder + slash + last, tag, digest


def rename_config_maps(objects):
    """Adds a hash of the content to generated ConfigMaps and all references, so that a change rolls out."""
    names = {}
    for one in objects:
        if one.pop("generated", False):
            names[name_of(one)] = f"{name_of(one)}-{suffix(one)}"
            one["metadata"]["name"] = names[name_of(one)]
    for one in objects:
        for pod in pods(one):
            for volume in pod.get("volumes", []):
                rename(volume.get("configMap"), names)
        for container in containers(one):
            for source in container.get("envFrom", []):
                rename(source.get("configMapRef"), names)
            for variable in container.get("env", []):
                rename(variable.get("valueFrom", {}).get("configMapKeyRef"), names)


def rename(reference, names):
    if reference:
        reference["name"] = names.get(reference["name"], reference["name"])


def suffix(config_map):
    """The hash of a ConfigMap as kustomize makes it: ten characters that form no words."""
    told = {"data": config_map.get("data") or "", "kind": "ConfigMap", "name": config_map["metadata"].get("name", "")}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Go's encoder writes these so, for the sake of pages that hold JSON.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return digest.translate(str.maketrans("013ae", "ghkmt"))


def environments(objects):
    """The configuration of each service: its variables, also those from ConfigMaps, the files mounted from ConfigMaps, and
    its memory limit. Variables from Secrets are left out."""
    maps = {name_of(one): one["data"] for one in objects if one["kind"] == "ConfigMap"}
    told = {}
    for one in objects:
        if one["kind"] != "Deployment" or one["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") != "thresher":
            continue
        (pod,) = pods(one)
        (container,) = pod["containers"]
        variables = {}
        for variable in container.get("env", []):
            reference = variable.get("valueFrom", {}).get("configMapKeyRef")
            if reference:
                variables[variable["name"]] = maps[reference["name"]][reference["key"]]
            elif "value" in variable:
                variables[variable["name"]] = variable["value"]
        files = {}
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            reference = volumes[mount["name"]].get("configMap")
            for key, text in (maps[reference["name"]] if reference else {}).items():
                files[f"{mount['mountPath']}/{key}"] = text
        limit = container["resources"]["limits"]["memory"]
        told[name_of(one)] = {
            "binary": container["command"][0],
            "variables": variables,
            "files": files,
            "memory_bytes": bytes_of(limit),
            "grace_seconds": pod["terminationGracePeriodSeconds"],
        }
    return told


def bytes_of(quantity):
    """Bytes of a quantity as Kubernetes writes it."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]i?)?", str(quantity)).groups()
    powers = {None: 1, **{f"{letter}i": 1024**n for n, letter in enumerate("KMGT", 1)}, **{letter: 1000**n for n, letter in enumerate("KMGT", 1)}}
    return int(number) * powers[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with a kustomization.yaml")
    parser.add_argument("--environments", action="store_true", help="what each service is told, as JSON")
    arguments = parser.parse_args()
    try:
        objects = build(arguments.folder)
    except (Refused, OSError, yaml.YAMLError) as error:
        sys.exit(f"build.py: {error}")
    if arguments.environments:
        json.dump(environments(objects), sys.stdout, indent=2)
    else:
        yaml.safe_dump_all(objects, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
