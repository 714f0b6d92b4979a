"""The builder of manifests does what kustomize does, as far as it goes, and refuses the rest."""

import tempfile
import unittest
from pathlib import Path

import yaml

import places  # noqa: F401 - puts the builder on the path
from build import Refused, build, environments, suffix

POD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, labels: {app.kubernetes.io/part-of: thresher}}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      terminationGracePeriodSeconds: 45
      containers:
        - name: service
          image: registry.example.org:5000/thresher
          command: [/bin/one]
          resources: {limits: {memory: 1Gi}}
          env:
            - {name: A, value: "1"}
            - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}
          volumeMounts: [{name: config, mountPath: /etc/one}]
      volumes:
        - {name: config, configMap: {name: settings}}
"""


class Building(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, **told):
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in told.pop("files", {}).items():
            (folder / file).write_text(text)
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(told))
        return folder

    def base(self, **told):
        maps = [{"name": "settings", "literals": ["b=2"]}]
        return self.write("base", files={"one.yaml": POD}, resources=["one.yaml"], configMapGenerator=maps, **told)

    def deployment(self, folder):
        (one,) = [one for one in build(folder) if one["kind"] == "Deployment"]
        return one

    def refusal(self, folder):
        with self.assertRaises(Refused) as refused:
            build(folder)
        return str(refused.exception)

    def test_the_hash_of_a_config_map_is_that_of_kustomize(self):
        # As kustomize's own tests have them.
        self.assertEqual(suffix({"metadata": {}}), "6ct58987ht")
        self.assertEqual(suffix({"metadata": {}, "data": {"one": ""}}), "9g67k2htb6")
        self.assertEqual(suffix({"metadata": {}, "data": {"two": 2, "one": "", "three": 3}}), "7757f9kkct")

    def test_a_generated_name_carries_its_hash_wherever_it_is_referred_to_and_changes_with_what_is_in_it(self):
        objects = build(self.base())
        (settings,) = [one for one in objects if one["kind"] == "ConfigMap"]
        name = settings["metadata"]["name"]
        self.assertRegex(name, r"^settings-\w{10}$")
        pod = self.deployment(self.folder / "base")["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"][0]["configMap"]["name"], name)
        self.assertEqual(pod["containers"][0]["env"][1]["valueFrom"]["configMapKeyRef"]["name"], name)
        self.assertNotIn("generated", settings)
        over = self.write("over", resources=["../base"], configMapGenerator=[{"name": "settings", "behavior": "merge", "literals": ["b=3", "c=x=y"]}])
        (merged,) = [one for one in build(over) if one["kind"] == "ConfigMap"]
        self.assertEqual(merged["data"], {"b": "3", "c": "x=y"})
        self.assertNotEqual(merged["metadata"]["name"], name)

    def test_a_patch_merges_items_by_their_keys_and_replaces_other_lists(self):
        patch = """
kind: Deployment
metadata: {name: one, labels: {new: label}}
spec:
  replicas: null
  template:
    spec:
      containers:
        - name: service
          command: [/bin/two]
          env: [{name: A, value: "9"}, {name: C, value: "3"}, {name: B, $patch: delete}]
          volumeMounts: [{mountPath: /etc/one, readOnly: true}]
      volumes: [{name: config, configMap: null, emptyDir: {}}]
"""
        over = self.write("over", resources=["../base"], patches=[{"patch": patch}])
        self.base()
        one = self.deployment(over)
        self.assertNotIn("replicas", one["spec"])
        self.assertEqual(one["metadata"]["labels"]["new"], "label")
        pod = one["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"], [{"name": "config", "emptyDir": {}}])
        (container,) = pod["containers"]
        self.assertEqual(container["command"], ["/bin/two"])
        self.assertEqual(container["env"], [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}])
        self.assertEqual(container["volumeMounts"], [{"name": "config", "mountPath": "/etc/one", "readOnly": True}])

    def test_a_patch_with_a_target_concerns_all_that_it_describes_and_keeps_their_names(self):
        two = POD.replace("name: one,", "name: two,")
        other = "{apiVersion: v1, kind: Service, metadata: {name: one}, spec: {ports: [{port: 1}]}}"
        patch = "{kind: Deployment, metadata: {name: any}, spec: {paused: true}}"
        for target, concerned in [
            ({"kind": "Deployment"}, ["one", "two"]),
            ({"kind": "Deployment", "name": "tw."}, ["two"]),
            ({"kind": "Deployment", "name": "t"}, None),
            ({"kind": "Deployment", "labelSelector": "app.kubernetes.io/part-of=thresher"}, ["one", "two"]),
            ({"kind": "Deployment", "labelSelector": "app.kubernetes.io/part-of=other"}, None),
        ]:
            with self.subTest(target=target):
                folder = self.write("all", files={"a.yaml": f"{POD}\n---\n{two}\n---\n{other}"}, resources=["a.yaml"], patches=[{"patch": patch, "target": target}])
                if concerned is None:
                    self.assertIn("concerns nothing", self.refusal(folder))
                else:
                    self.assertEqual([one["metadata"]["name"] for one in build(folder) if one.get("spec", {}).get("paused")], concerned)

    def test_a_patch_deletes_an_object(self):
        self.base()
        over = self.write("over", resources=["../base"], patches=[{"patch": "{$patch: delete, kind: Deployment, metadata: {name: one}}"}])
        self.assertEqual([one["kind"] for one in build(over)], ["ConfigMap"])

    def test_ports_of_services_and_containers_have_keys_of_their_own(self):
        service = "{apiVersion: v1, kind: Service, metadata: {name: one}, spec: {ports: [{port: 1, name: a}]}}"
        patch = "{kind: Service, metadata: {name: one}, spec: {ports: [{port: 1, targetPort: x}, {port: 2, name: b}]}}"
        folder = self.write("ports", files={"a.yaml": service}, resources=["a.yaml"], patches=[{"patch": patch}])
        self.assertEqual(build(folder)[0]["spec"]["ports"], [{"port": 1, "name": "a", "targetPort": "x"}, {"port": 2, "name": "b"}])

    def test_namespace_labels_images_and_replicas_reach_everything(self):
        self.base()
        spaces = "{apiVersion: v1, kind: Namespace, metadata: {name: old}}"
        over = self.write(
            "over",
            files={"space.yaml": spaces},
            resources=["../base", "space.yaml"],
            namespace="harvest",
            labels=[{"pairs": {"x": "y"}, "includeTemplates": True}],
            images=[{"name": "registry.example.org:5000/thresher", "newName": "mirror/thresher", "newTag": "2"}],
            replicas=[{"name": "one", "count": 4}],
        )
        one = self.deployment(over)
        self.assertEqual((one["metadata"]["namespace"], one["spec"]["replicas"]), ("harvest", 4))
        self.assertEqual(one["spec"]["template"]["metadata"]["labels"], {"a": "b", "x": "y"})
        self.assertEqual(one["spec"]["selector"]["matchLabels"], {"a": "b"})
        self.assertEqual(one["spec"]["template"]["spec"]["containers"][0]["image"], "mirror/thresher:2")
        (space,) = [one for one in build(over) if one["kind"] == "Namespace"]
        self.assertEqual(space["metadata"]["name"], "harvest")
        self.assertNotIn("namespace", space["metadata"])

    def test_what_kustomize_would_refuse_or_this_does_not_know_is_refused(self):
        self.base()
        for told, why in [
            ({"resources": ["../base"], "components": []}, "components"),
            ({"resources": ["../base/one.yaml"]}, "files of its own folder"),
            ({"resources": ["../base", "../base"]}, "there twice"),
            ({"resources": ["../base"], "images": [{"name": "other", "newTag": "1"}]}, "no container has the image other"),
            ({"resources": ["../base"], "replicas": [{"name": "other", "count": 1}]}, "there is no other"),
            ({"resources": ["../base"], "configMapGenerator": [{"name": "settings", "literals": ["b=3"]}]}, "cannot create"),
            ({"resources": ["../base"], "configMapGenerator": [{"name": "other", "behavior": "merge"}]}, "cannot merge"),
            ({"resources": ["../base"], "configMapGenerator": [{"name": "x", "files": ["../base/one.yaml"]}]}, "files of its own folder"),
            ({"resources": ["../nowhere"]}, "nowhere"),
        ]:
            with self.subTest(why=why):
                try:
                    self.assertIn(why, self.refusal(self.write("over", **told)))
                except FileNotFoundError as error:
                    self.assertIn(why, str(error))

    def test_the_environment_of_a_service_has_what_its_config_maps_say(self):
        told = environments(build(self.base()))
        self.assertEqual(
            told["one"],
            {"binary": "/bin/one", "variables": {"A": "1", "B": "2"}, "files": {"/etc/one/b": "2"}, "memory_bytes": 1 << 30, "grace_seconds": 45},
        )


if __name__ == "__main__":
    unittest.main()
