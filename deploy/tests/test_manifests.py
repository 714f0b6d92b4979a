"""The manifests are what Kubernetes takes, and keep our own rules."""

import copy
import json
import re
import unittest

import jsonschema
import kubernetes_validate
import yaml

import rules
from places import DEPLOY, KUBERNETES, OVERLAYS, ROOT, read, services, stage_names

from build import build, bytes_of, containers, name_of, pods  # places tells where it is

# What inboxes take beside the streams of the stages, where there are any: what the gateway sets aside unless it is told otherwise.
INBOX_MEGABYTES = int(re.search(r"megabytes: (\d+),", read("services/gateway/src/config.rs").split("impl Default for InboxSettings")[1])[1])
# The oldest release of Kubernetes that these are for, and the newest whose schemas are known.
RELEASES = ["1.31", kubernetes_validate.latest_version()]
# Custom resources: Kubernetes' own schemas do not know them. These are of what is used of each, and refuse all else.
CUSTOM = {kind: json.loads((DEPLOY / f"tests/schemas/{kind.lower()}.json").read_text()) for kind in ("ServiceMonitor", "ScaledObject")}


def check(one):
    """Fails when Kubernetes, or the operator of a custom resource, would not take it."""
    if one["kind"] in CUSTOM:
        jsonschema.validate(one, CUSTOM[one["kind"]])
    else:
        for release in RELEASES:
            kubernetes_validate.validate(one, release, strict=True)


def files():
    """All manifests as they are written; and patches, which are parts of such."""
    return [path for path in sorted(KUBERNETES.rglob("*.yaml")) if path.name != "kustomization.yaml" and path.parent.name != "nats"]


def patches():
    """The files that are patches: what becomes of them is checked where they are built in."""
    told = [(path.parent, yaml.safe_load(path.read_text())) for path in KUBERNETES.rglob("kustomization.yaml")]
    return {folder / patch["path"] for folder, one in told for patch in one.get("patches", []) if "path" in patch}


class Manifests(unittest.TestCase):
    def test_there_are_overlays_and_each_is_built(self):
        self.assertEqual([path.name for path in OVERLAYS], ["local", "production"])

    def test_each_file_is_what_kubernetes_takes(self):
        whole = [path for path in files() if path not in patches()]
        self.assertGreater(len(whole), 8)
        for path in whole:
            for one in yaml.safe_load_all(path.read_text()):
                with self.subTest(file=path.relative_to(ROOT), name=name_of(one)):
                    check(one)

    def test_each_file_is_built_into_something(self):
        told = [path.parent / name for path in [*KUBERNETES.rglob("kustomization.yaml")] for name in names_in(path)]
        self.assertEqual(sorted(str(path) for path in files() if path not in told), [])

    def test_all_that_is_built_is_what_kubernetes_takes(self):
        for overlay in [*OVERLAYS, KUBERNETES / "scaling/cpu"]:
            for one in build(overlay):
                with self.subTest(overlay=overlay.name, kind=one["kind"], name=name_of(one)):
                    check(one)

    def test_all_that_is_built_keeps_our_rules(self):
        for overlay in OVERLAYS:
            objects = build(overlay)
            for rule in rules.RULES:
                with self.subTest(overlay=overlay.name, rule=rule.__name__):
                    self.assertEqual(list(rule(objects)), [])

    def test_the_overlay_for_production_keeps_the_rules_of_its_own(self):
        objects = build(KUBERNETES / "overlays/production")
        for rule in rules.PRODUCTION:
            with self.subTest(rule=rule.__name__):
                self.assertEqual(list(rule(objects)), [])

    def test_the_nats_servers_are_reached_by_the_fleet_and_by_each_other(self):
        (policy,) = build(KUBERNETES / "nats")
        check(policy)
        self.assertEqual((policy["metadata"]["namespace"], policy["spec"]["policyTypes"]), ("nats", ["Ingress"]))
        told = {port["port"]: rule["from"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        self.assertEqual(set(told), {4222, 6222, 8222})
        self.assertTrue(all(one.get("podSelector") or one.get("namespaceSelector") for who in told.values() for one in who))
        (fleet,) = told[4222]
        self.assertEqual(fleet["podSelector"], {"matchLabels": {"app.kubernetes.io/part-of": "thresher"}})
        # The port of the cluster asks for no password.
        self.assertEqual(told[6222], [{"podSelector": policy["spec"]["podSelector"]}])
        values = yaml.safe_load((KUBERNETES / "nats/values.yaml").read_text())["config"]
        self.assertTrue(values["nats"]["tls"]["enabled"] and values["cluster"]["tls"]["enabled"])

    def test_a_publisher_with_hubs_reaches_subscribers_and_no_private_address(self):
        (policy,) = build(KUBERNETES / "hub")
        check(policy)
        pods_of = {"app.kubernetes.io/component": "publisher", "app.kubernetes.io/part-of": "thresher"}
        self.assertEqual(policy["spec"]["podSelector"], {"matchLabels": pods_of})
        self.assertEqual(policy["spec"]["policyTypes"], ["Egress"])
        for overlay in OVERLAYS:
            objects = [*build(overlay), policy]
            self.assertEqual(list(rules.network(objects)), [])
            (sources,) = [one for one in objects if name_of(one) == "to-sources"]
            self.assertEqual(policy["spec"]["egress"], sources["spec"]["egress"], "the same addresses as for Sources")

    def test_what_strangers_reach_is_what_the_gateway_has_for_them(self):
        (callbacks,) = re.findall(r'const PATH: &str = "(/\w+)/', read("services/gateway/src/push/mod.rs"))
        (inboxes,) = re.findall(r'const HOME: &str = "(/\w+)"', read("services/gateway/src/inbox/mod.rs"))
        self.assertEqual(rules.FOR_STRANGERS, {callbacks, inboxes})
        objects = build(KUBERNETES / "overlays/production")
        (fleet,) = [one["data"] for one in objects if name_of(one).startswith("fleet-")]
        host = re.search(r"https://([\w.-]+)/", fleet["push"])[1]
        told = [rule["host"] for one in objects if one["kind"] == "Ingress" for rule in one["spec"]["rules"]]
        self.assertEqual(told, [host])

    def test_the_overlay_for_trials_may_be_scaled_by_processor_time_alone(self):
        objects = build(KUBERNETES / "overlays/local") + build(KUBERNETES / "scaling/cpu")
        for one in objects:
            if rules.is_service(one) and any(pods(one)):
                one["spec"].pop("replicas")
        self.assertEqual(list(rules.autoscaling(objects)), [])

    def test_all_services_run_each_by_its_own_binary_and_configuration(self):
        for overlay in OVERLAYS:
            found = {}
            for one in filter(rules.is_service, rules.workloads(build(overlay))):
                (container,) = containers(one)
                variables = {variable["name"]: variable.get("value") for variable in container["env"]}
                found[name_of(one)] = (container["command"], variables[f"THRESHER_{name_of(one).upper()}_CONFIG"])
            wanted = {name: ([f"/usr/local/bin/{name}"], f"/etc/thresher/{name}.yaml") for name in services()}
            self.assertEqual(found, wanted, overlay.name)

    def test_a_variable_that_sets_a_field_is_of_the_service_that_reads_it(self):
        for overlay in OVERLAYS:
            for one in filter(rules.is_service, rules.workloads(build(overlay))):
                for variable in next(containers(one))["env"]:
                    if variable["name"].startswith("THRESHER_"):
                        self.assertRegex(variable["name"], f"^THRESHER_{name_of(one).upper()}_")

    def test_the_end_leaves_time_for_the_drain(self):
        for overlay in OVERLAYS:
            for one in filter(rules.is_service, rules.workloads(build(overlay))):
                told = yaml.safe_load((DEPLOY / f"config/{name_of(one)}.yaml").read_text())
                drain = told["service"]["drain_seconds"]
                (pod,) = pods(one)
                self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], drain + 10, name_of(one))

    def test_the_probes_ask_for_pages_that_the_admin_port_has(self):
        pages = set(re.findall(r'\.route\("(/\w+)"', read("libs/service/src/admin.rs")))
        self.assertLessEqual({*rules.PROBES.values(), "/metrics"}, pages)

    def test_each_secret_is_documented_with_its_keys(self):
        page = (KUBERNETES / "README.md").read_text()
        rows = {tuple(row): True for row in re.findall(r"^\| `([\w-]+)` \| `([\w.-]*)`", page, re.M)}
        used = {pair for overlay in OVERLAYS for pair in rules.secrets(build(overlay))}
        self.assertTrue(used)
        for secret, key in sorted(used):
            with self.subTest(secret=secret, key=key):
                if key:
                    self.assertIn((secret, key), rows)
                else:
                    self.assertIn(secret, {name for name, _ in rows})

    def test_what_is_scaled_by_is_there_in_the_code(self):
        namespace = yaml.safe_load((DEPLOY / "config/fetcher.yaml").read_text())["nats"]["namespace"]
        streams = {f"{namespace}-{stage}" for stage in stage_names()}
        self.assertEqual(len(streams), 7)
        names = read("libs/bus/src/jetstream/names.rs")
        shared = re.search(r'((?:Filter::\w+ \| )*Filter::\w+) => "(\w+)"', names)
        filters, consumer = {name.lower() for name in re.findall(r"Filter::(\w+)", shared[1])}, shared[2]
        checked = 0
        for one in build(KUBERNETES / "overlays/production"):
            for trigger in one["spec"].get("triggers", []) if one["kind"] == "ScaledObject" else []:
                told = trigger["metadata"]
                if trigger["type"] == "nats-jetstream":
                    self.assertIn(told["stream"], streams)
                    self.assertIn(told["stream"].removeprefix(f"{namespace}-"), filters)
                    self.assertEqual(told["consumer"], consumer)
                    checked += 1
                elif trigger["type"] == "metrics-api":
                    (stream,) = re.findall(r'name=="([\w-]+)"', told["valueLocation"])
                    self.assertIn(stream, streams)
                    checked += 1
        self.assertEqual(checked, 4)

    def test_what_is_scaled_to_is_what_one_process_works_on_at_a_time(self):
        config = {name: yaml.safe_load((DEPLOY / f"config/{name}.yaml").read_text())[name] for name in ("fetcher", "unpacker", "verifier")}
        at_a_time = {
            "thresher-unpack": config["unpacker"]["max_concurrent_jobs"],
            "thresher-open": config["unpacker"]["max_open_packages"],
            "thresher-verify": config["verifier"]["max_concurrent_jobs"],
        }
        for one in build(KUBERNETES / "overlays/production"):
            for trigger in one["spec"].get("triggers", []) if one["kind"] == "ScaledObject" else []:
                told = trigger["metadata"]
                if trigger["type"] == "nats-jetstream":
                    self.assertEqual(int(told["lagThreshold"]), at_a_time[told["stream"]], told["stream"])
                elif trigger["type"] == "metrics-api":
                    self.assertEqual(int(told["targetValue"]), config["fetcher"]["max_concurrent_jobs"])

    def test_the_servers_of_the_message_bus_have_room_for_all_streams(self):
        values = yaml.safe_load((KUBERNETES / "nats/values.yaml").read_text())["config"]
        room = bytes_of(values["jetstream"]["fileStore"]["pvc"]["size"])
        (fleet,) = [one["data"] for one in build(KUBERNETES / "overlays/production") if name_of(one).startswith("fleet-")]
        asked = (len(stage_names()) * int(fleet["nats-max-megabytes-per-stream"]) + INBOX_MEGABYTES) * 1024**2
        # The rest is for what the fleet shares, and for NATS itself.
        self.assertLessEqual(asked, room * 0.75)
        self.assertEqual(values["cluster"]["replicas"], int(fleet["nats-replicas"]))
        self.assertEqual(values["monitor"]["port"], 8222)
        (local,) = [one["data"] for one in build(KUBERNETES / "overlays/local") if name_of(one).startswith("fleet-")]
        (nats,) = [one for one in build(KUBERNETES / "overlays/local") if one["kind"] == "Deployment" and name_of(one) == "nats"]
        (volume,) = [volume for volume in next(pods(nats))["volumes"] if volume["name"] == "data"]
        asked = (len(stage_names()) * int(local["nats-max-megabytes-per-stream"]) + INBOX_MEGABYTES) * 1024**2
        self.assertLessEqual(asked, bytes_of(volume["emptyDir"]["sizeLimit"]) * 0.75)


class Rules(unittest.TestCase):
    """Each rule finds what it is there for."""

    def found(self, rule, change):
        objects = copy.deepcopy(build(KUBERNETES / "overlays/production"))
        one = next(one for one in objects if one["kind"] == "Deployment" and name_of(one) == "fetcher")
        change(objects, one, next(pods(one)), next(containers(one)))
        return list(rule(objects))

    def test_what_is_broken_is_found(self):
        def policies(objects, name):
            return next(one for one in objects if one["kind"] == "NetworkPolicy" and name_of(one) == name)["spec"]

        def fleet(objects):
            return next(one for one in objects if one["kind"] == "ConfigMap" and name_of(one).startswith("fleet"))["data"]

        def key_of(secret):
            return {"name": "X", "valueFrom": {"secretKeyRef": {"name": secret, "key": "access-key-id"}}}

        def ingress(objects):
            return next(one for one in objects if one["kind"] == "Ingress")

        def path_of(objects):
            return ingress(objects)["spec"]["rules"][0]["http"]["paths"][0]

        for rule, change in [
            (rules.probes, lambda o, one, pod, c: c.pop("livenessProbe")),
            (rules.probes, lambda o, one, pod, c: c["readinessProbe"]["httpGet"].update(path="/healthz")),
            (rules.resources, lambda o, one, pod, c: c["resources"].pop("limits")),
            (rules.rights, lambda o, one, pod, c: pod.pop("automountServiceAccountToken")),
            (rules.rights, lambda o, one, pod, c: pod["securityContext"].pop("runAsNonRoot")),
            (rules.rights, lambda o, one, pod, c: pod["securityContext"].pop("seccompProfile")),
            (rules.rights, lambda o, one, pod, c: pod.update(hostNetwork=True)),
            (rules.rights, lambda o, one, pod, c: pod["volumes"].append({"name": "m", "hostPath": {"path": "/"}})),
            (rules.rights, lambda o, one, pod, c: c["securityContext"].pop("allowPrivilegeEscalation")),
            (rules.rights, lambda o, one, pod, c: c["securityContext"].pop("readOnlyRootFilesystem")),
            (rules.rights, lambda o, one, pod, c: c["securityContext"].update(capabilities={"add": ["NET_ADMIN"]})),
            (rules.volumes, lambda o, one, pod, c: c["volumeMounts"].pop()),
            (rules.volumes, lambda o, one, pod, c: pod["volumes"].append({"name": "x", "emptyDir": {}})),
            (rules.references, lambda o, one, pod, c: pod.update(serviceAccountName="default")),
            (rules.references, lambda o, one, pod, c: pod["volumes"].append({"name": "x", "configMap": {"name": "none"}})),
            (rules.references, lambda o, one, pod, c: c["env"].append({"name": "X", "valueFrom": {"configMapKeyRef": {"name": "fleet", "key": "x"}}})),
            (rules.written_secrets, lambda o, one, pod, c: c["env"].append({"name": "NATS_PASSWORD", "value": "x"})),
            (rules.written_secrets, lambda o, one, pod, c: o.append({"kind": "Secret", "metadata": {"name": "x"}})),
            (rules.spread_and_budgets, lambda o, one, pod, c: pod.pop("topologySpreadConstraints")),
            (rules.spread_and_budgets, lambda o, one, pod, c: one["spec"]["selector"]["matchLabels"].update(x="y")),
            (rules.network, lambda o, one, pod, c: policies(o, "default-deny").update(policyTypes=["Ingress"])),
            (rules.network, lambda o, one, pod, c: policies(o, "to-dns")["egress"][0].pop("to")),
            (rules.network, lambda o, one, pod, c: policies(o, "to-sources")["egress"][0]["to"][0]["ipBlock"].pop("except")),
            (rules.network, lambda o, one, pod, c: policies(o, "to-sources")["podSelector"]["matchExpressions"][0]["values"].append("verifier")),
            (rules.exposed, lambda o, one, pod, c: path_of(o).update(path="/")),
            (rules.exposed, lambda o, one, pod, c: path_of(o).update(path="/v1")),
            (rules.exposed, lambda o, one, pod, c: path_of(o).update(pathType="ImplementationSpecific")),
            (rules.exposed, lambda o, one, pod, c: path_of(o)["backend"]["service"].update(name="scheduler")),
            (rules.exposed, lambda o, one, pod, c: ingress(o)["spec"].pop("tls")),
            (rules.exposed, lambda o, one, pod, c: ingress(o)["spec"].update(defaultBackend=path_of(o)["backend"])),
            (rules.named_by_digest, lambda o, one, pod, c: c.update(image="registry.example.org/thresher:0.1.0")),
            (rules.encrypted, lambda o, one, pod, c: fleet(o).update({"nats-tls": "{}"})),
            (rules.encrypted, lambda o, one, pod, c: fleet(o).update({"nats-servers": '["nats://nats.nats:4222"]'})),
            (rules.least_keys, lambda o, one, pod, c: c["env"].append(key_of("thresher-s3-reading"))),
            (rules.autoscaling, lambda o, one, pod, c: one["spec"].update(replicas=2)),
            (rules.autoscaling, lambda o, one, pod, c: o.extend(build(KUBERNETES / "scaling/cpu"))),
        ]:
            with self.subTest(rule=rule.__name__):
                self.assertNotEqual(self.found(rule, change), [])

    def test_schemas_refuse_what_is_misspelt(self):
        for kind in CUSTOM:
            one = next(one for one in build(KUBERNETES / "overlays/production") if one["kind"] == kind)
            check(one)
            with self.assertRaises(jsonschema.ValidationError):
                check({**one, "spec": {**one["spec"], "misspelt": 1}})
        with self.assertRaises(kubernetes_validate.ValidationError):
            deployment = next(one for one in build(KUBERNETES / "overlays/local") if one["kind"] == "Deployment")
            check({**deployment, "spec": {**deployment["spec"], "replica": 1}})


def names_in(path):
    """The files that a kustomization names."""
    told = yaml.safe_load(path.read_text())
    return [*told.get("resources", []), *(patch["path"] for patch in told.get("patches", []) if "path" in patch)]


if __name__ == "__main__":
    unittest.main()
