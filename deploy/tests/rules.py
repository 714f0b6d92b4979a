"""Our own rules for manifests, beside those of Kubernetes. Each takes the objects of a build and yields what is wrong."""

import re

import yaml

import places  # noqa: F401 - puts the builder on the path
from build import containers, name_of, pods

# Our own services' probes: the paths of the admin port (libs/service/src/admin.rs).
PROBES = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
# Who asks strangers' servers.
OUTWARD = {"fetcher", "scheduler"}


def workloads(objects):
    return [one for one in objects if any(pods(one))]


def is_service(one):
    """Whether it is one of Thresher's own."""
    return one["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") == "thresher"


def probes(objects):
    """Each container has probes; those of our services request pages of the admin port."""
    for one in workloads(objects):
        for container in containers(one):
            for probe, path in PROBES.items():
                asked = container.get(probe)
                if not asked:
                    yield f"{name_of(one)} has no {probe}"
                elif is_service(one) and asked.get("httpGet") != {"path": path, "port": "admin"}:
                    yield f"{name_of(one)}: {probe} asks for {asked}, and not for {path} of the admin port"


def resources(objects):
    """Each container says what memory it wants and may have, and what processor time it wants. It has no limit of that: one would
    make it slow while the machine is idle."""
    for one in workloads(objects):
        for container in containers(one):
            told = container.get("resources", {})
            for kind, what in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
                if what not in told.get(kind, {}):
                    yield f"{name_of(one)} has no {kind}.{what}"


def rights(objects):
    """No container has any right that it does not need."""
    for one in workloads(objects):
        for pod in pods(one):
            if pod.get("automountServiceAccountToken") is not False:
                yield f"{name_of(one)} is given a token of its service account"
            context = pod.get("securityContext", {})
            if context.get("runAsNonRoot") is not True:
                yield f"{name_of(one)} may run as root"
            if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
                yield f"{name_of(one)} has no seccomp profile"
            for key in ("hostNetwork", "hostPID", "hostIPC"):
                if pod.get(key):
                    yield f"{name_of(one)} has {key}"
            for volume in pod.get("volumes", []):
                if "hostPath" in volume:
                    yield f"{name_of(one)} reaches into its machine: {volume['name']}"
        for container in containers(one):
            context = container.get("securityContext", {})
            if context.get("allowPrivilegeEscalation") is not False:
                yield f"{name_of(one)} may gain rights"
            if context.get("readOnlyRootFilesystem") is not True:
                yield f"{name_of(one)} may write to its own files"
            if context.get("capabilities") != {"drop": ["ALL"]}:
                yield f"{name_of(one)} keeps capabilities"


def volumes(objects):
    """Mounted volumes exist, existing ones are mounted, and growing ones have a limit."""
    for one in workloads(objects):
        for pod in pods(one):
            there = {volume["name"] for volume in pod.get("volumes", [])}
            mounted = {mount["name"] for container in containers(one) for mount in container.get("volumeMounts", [])}
            for name in sorted(there ^ mounted):
                yield f"{name_of(one)}: volume {name} is {'not mounted' if name in there else 'not there'}"
            for volume in pod.get("volumes", []):
                if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
                    yield f"{name_of(one)}: volume {volume['name']} has no limit"
            if is_service(one) and "spool" not in there:
                yield f"{name_of(one)} has no spool"


def references(objects):
    """Referenced ConfigMaps, their keys and service accounts exist."""
    maps = {name_of(one): one.get("data", {}) for one in objects if one["kind"] == "ConfigMap"}
    accounts = {name_of(one) for one in objects if one["kind"] == "ServiceAccount"}
    for one in workloads(objects):
        for pod in pods(one):
            if is_service(one) and pod.get("serviceAccountName") not in accounts:
                yield f"{name_of(one)} has no service account of its own"
            for volume in pod.get("volumes", []):
                if "configMap" in volume and volume["configMap"]["name"] not in maps:
                    yield f"{name_of(one)}: there is no ConfigMap {volume['configMap']['name']}"
        for container in containers(one):
            for variable in container.get("env", []):
                reference = variable.get("valueFrom", {}).get("configMapKeyRef")
                if reference and reference["key"] not in maps.get(reference["name"], {}):
                    yield f"{name_of(one)}: {variable['name']}: there is no {reference['key']} in {reference['name']}"


def secrets(objects):
    """All keys of Secrets that are referred to, as (secret, key); the key is empty where the whole Secret is mounted."""
    for one in workloads(objects):
        for pod in pods(one):
            for volume in pod.get("volumes", []):
                if "secret" in volume:
                    items = volume["secret"].get("items") or [{"key": ""}]
                    for item in items:
                        yield volume["secret"]["secretName"], item["key"]
        for container in containers(one):
            for variable in container.get("env", []):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                if reference:
                    yield reference["name"], reference["key"]


def written_secrets(objects):
    """No Secret is written down, nor anything that looks like one."""
    for one in objects:
        if one["kind"] == "Secret":
            yield f"the Secret {name_of(one)} is written down; only refer to it"
    for one in workloads(objects):
        for container in containers(one):
            for variable in container.get("env", []):
                is_place = variable.get("value", "").startswith("/run/secrets/")
                if "value" in variable and not is_place and re.search("PASSWORD|SECRET|TOKEN|ACCESS_KEY", variable["name"]):
                    yield f"{name_of(one)}: {variable['name']} is written down"


def spread_and_budgets(objects):
    """Each service is spread over machines, and drained one by one."""
    budgets = {name_of(one): one["spec"] for one in objects if one["kind"] == "PodDisruptionBudget"}
    for one in filter(is_service, workloads(objects)):
        for pod in pods(one):
            if not pod.get("topologySpreadConstraints"):
                yield f"{name_of(one)} is not spread"
        if budgets.get(name_of(one), {}).get("selector") != one["spec"]["selector"]:
            yield f"{name_of(one)} has no disruption budget of its own pods"


def network(objects):
    """Nothing may talk but where a policy lets it; only those reach strangers that have to."""
    policies = {name_of(one): one["spec"] for one in objects if one["kind"] == "NetworkPolicy"}
    if policies.get("default-deny") != {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}:
        yield "nothing is denied by default"
    for needed in ("to-dns", "to-nats", "to-store", "to-sources", "to-gateway", "to-publisher", "from-prometheus"):
        if needed not in policies:
            yield f"there is no policy {needed}"
    for name, spec in policies.items():
        blocks = [to["ipBlock"] for rule in spec.get("egress", []) for to in rule.get("to", []) if "ipBlock" in to]
        for block in blocks:
            private = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"}
            if block["cidr"] == "0.0.0.0/0" and not private <= set(block.get("except", [])):
                yield f"{name} reaches private addresses"
        if any(not rule.get("to") for rule in spec.get("egress", [])):
            yield f"{name} reaches everything"
        if name == "to-sources":
            (expression,) = spec["podSelector"]["matchExpressions"]
            if set(expression["values"]) != OUTWARD:
                yield f"{name} is for {expression['values']}"


def named_by_digest(objects):
    """Each image is named by its digest: a tag may be moved to another image. For production; trials take tags."""
    for one in workloads(objects):
        for container in containers(one):
            if not re.search(r"@sha256:[0-9a-f]{64}$", container["image"]):
                yield f"{name_of(one)}: {container['image']} is no image by digest"


def encrypted(objects):
    """What goes to NATS is encrypted, and its servers are known by their authority. For production."""
    (told,) = [one["data"] for one in objects if one["kind"] == "ConfigMap" and name_of(one).startswith("fleet")]
    if any(not server.startswith("tls://") for server in yaml.safe_load(told["nats-servers"])):
        yield f"nats-servers: {told['nats-servers']} are not all tls://"
    tls = yaml.safe_load(told["nats-tls"])
    if tls.get("required") is not True or not tls.get("ca_files"):
        yield f"nats-tls: {told['nats-tls']} neither requires encryption nor names an authority"


# Keys of the store for services that need not do everything there.
KEYS = {"gateway": "thresher-s3-reading", "publisher": "thresher-s3-publishing"}


def least_keys(objects):
    """The gateway and the publisher, which strangers reach, have keys of their own, which may do less."""
    for one in filter(is_service, workloads(objects)):
        names = {secret for secret, _ in secrets([one]) if secret.startswith("thresher-s3")}
        wanted = {KEYS.get(name_of(one), "thresher-s3")}
        if names != wanted:
            yield f"{name_of(one)} has the keys {sorted(names)} and not {sorted(wanted)}"


# What the gateway has for those who show no token of an operator.
FOR_STRANGERS = {"/push", "/ldn"}


def exposed(objects):
    """The world reaches of the gateway what is for strangers, by TLS, and nothing else."""
    for one in objects:
        if one["kind"] != "Ingress":
            continue
        spec = one["spec"]
        if "defaultBackend" in spec:
            yield f"{name_of(one)} hands on whatever is asked for"
        ended = {host for tls in spec.get("tls", []) for host in tls["hosts"]}
        for rule in spec.get("rules", []):
            if rule.get("host") not in ended:
                yield f"{name_of(one)}: {rule.get('host')} is reached without TLS"
            for told in rule["http"]["paths"]:
                if told["path"] not in FOR_STRANGERS or told["pathType"] != "Prefix":
                    yield f"{name_of(one)} hands on {told['path']} ({told['pathType']})"
                if told["backend"]["service"] != {"name": "gateway", "port": {"name": "api"}}:
                    yield f"{name_of(one)}: {told['path']} leads elsewhere"


def autoscaling(objects):
    """Each workload has one autoscaler at most, which concerns a workload that is there."""
    seen = set()
    names = {name_of(one) for one in workloads(objects)}
    for one in objects:
        if one["kind"] in ("HorizontalPodAutoscaler", "ScaledObject"):
            target = one["spec"]["scaleTargetRef"]["name"]
            if target in seen:
                yield f"{target} has two autoscalers"
            if target not in names:
                yield f"an autoscaler is for {target}, which is not there"
            seen.add(target)
    for one in filter(is_service, workloads(objects)):
        if (name_of(one) in seen) == ("replicas" in one["spec"]):
            yield f"{name_of(one)}: either an autoscaler or a number says how many there are"


RULES = [probes, resources, rights, volumes, references, written_secrets, least_keys, spread_and_budgets, network, exposed, autoscaling]
# Those of an overlay that is more than a trial.
PRODUCTION = [named_by_digest, encrypted]
