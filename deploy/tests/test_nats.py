"""The users of NATS: the configuration that is kept is the one that is made, and it is of the streams and buckets of the code."""

import importlib.util
import re
import unittest

import yaml

from places import DEPLOY, KUBERNETES, OVERLAYS, read, registered, services, stage_names

from build import build, name_of, pods  # places tells where it is


def load():
    """deploy/nats/build.py, beside the builder of manifests that has the same name."""
    spec = importlib.util.spec_from_file_location("nats_build", DEPLOY / "nats/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NATS = load()


class Users(unittest.TestCase):
    def test_the_file_is_what_is_made(self):
        self.assertEqual(read("deploy/nats/permissions.conf"), NATS.permissions(), "deploy/nats/build.py > deploy/nats/permissions.conf")

    def test_each_service_has_a_user_and_there_is_no_other(self):
        self.assertEqual(set(NATS.USERS), set(services()))

    def test_streams_and_buckets_are_those_of_the_code(self):
        self.assertEqual(set(NATS.STAGES), stage_names())
        buckets = registered("Bucket")
        opened = set(re.findall(r"(?:open|table)\(\s*Persisted::(\w+)", read("libs/control/src/control.rs")))
        self.assertEqual(set(NATS.CONTROL), {buckets[name] for name in opened})
        self.assertEqual(set(NATS.CONTROL) | set(NATS.BUS), set(buckets.values()))

    def test_the_namespace_is_that_of_the_configurations(self):
        for service in services():
            told = yaml.safe_load(read(f"deploy/config/{service}.yaml"))["nats"]
            self.assertEqual(told["namespace"], NATS.NAMESPACE)

    def test_no_user_may_do_everything_and_no_password_is_written_down(self):
        text = NATS.permissions()
        self.assertNotIn('">"', text)
        for password in re.findall(r"password: (\S+)", text):
            self.assertTrue(password.startswith("$THRESHER_NATS_"), password)

    def test_only_the_scheduler_makes_streams_and_empties_them(self):
        for user, told in NATS.USERS.items():
            subjects = NATS.publishes(told)
            if user != "scheduler":
                made = [one for one in subjects if re.search(r"STREAM\.(CREATE|UPDATE|PURGE|DELETE)", one)]
                inbox = "thresher-inbox" if user == "gateway" else "nothing"
                self.assertEqual([one for one in made if not one.endswith(inbox)], [], user)
                config = yaml.safe_load(read(f"deploy/config/{user}.yaml"))["nats"]
                self.assertIs(config["make_streams"], False, user)

    def test_the_gateway_sends_notices_and_no_other_messages(self):
        sent = [one for one in NATS.publishes(NATS.USERS["gateway"]) if one.startswith("thresher.")]
        self.assertEqual(sent, ["thresher.notices.>"])

    def test_each_pod_is_given_the_password_of_its_own_user_alone(self):
        for overlay in OVERLAYS:
            for one in build(overlay):
                if one["kind"] != "Deployment" or name_of(one) not in services():
                    continue
                with self.subTest(overlay=overlay.name, service=name_of(one)):
                    (pod,) = pods(one)
                    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "nats-secret"]
                    self.assertEqual(volume["secret"]["items"], [{"key": name_of(one), "path": "password"}])
                    (container,) = pod["containers"]
                    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
                    told = yaml.safe_load(variables[f"THRESHER_{name_of(one).upper()}__NATS__CREDENTIALS"])
                    self.assertEqual(told, {"user": name_of(one), "password": {"file": "/run/secrets/nats/password"}})

    def test_the_servers_read_the_file(self):
        values = (KUBERNETES / "nats/values.yaml").read_text()
        self.assertEqual(yaml.safe_load(values)["config"]["merge"], {"$include": "permissions.conf"})
        given = "--set-file 'configMap.merge.data.permissions\\.conf=deploy/nats/permissions.conf'"
        self.assertIn(given, values)
        self.assertIn(given, read("deploy/kubernetes/README.md"))
        (kept,) = [one for one in build(KUBERNETES / "overlays/local") if name_of(one).startswith("nats-permissions-")]
        self.assertEqual(kept["data"]["permissions.conf"], NATS.permissions())

    def test_the_servers_have_the_password_of_each_user(self):
        values = yaml.safe_load((KUBERNETES / "nats/values.yaml").read_text())
        wanted = {f"THRESHER_NATS_{user.upper()}": user for user in NATS.USERS}
        told = {name: one["valueFrom"]["secretKeyRef"]["key"] for name, one in values["container"]["env"].items()}
        self.assertEqual(told, wanted)
        (nats,) = [one for one in build(KUBERNETES / "overlays/local") if one["kind"] == "Deployment" and name_of(one) == "nats"]
        env = next(pods(nats))["containers"][0]["env"]
        self.assertEqual({one["name"]: one["valueFrom"]["secretKeyRef"]["key"] for one in env}, wanted)


if __name__ == "__main__":
    unittest.main()
