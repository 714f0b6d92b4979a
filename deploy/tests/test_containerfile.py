"""The Containerfile is one by the parser of those who build images, and what it copies and builds is there."""

import json
import re
import tomllib
import unittest

import dockerfile

from places import DEPLOY, OVERLAYS, ROOT, read, services
from rules import is_service, workloads

from build import build, containers  # places tells where it is

FILE = DEPLOY / "Containerfile"


class Containerfile(unittest.TestCase):
    def setUp(self):
        self.commands = dockerfile.parse_file(str(FILE))

    def of(self, name):
        return [command for command in self.commands if command.cmd.upper() == name]

    def images(self):
        """The images that it builds on, by the argument that names them."""
        return dict(command.value[0].split("=", 1) for command in self.of("ARG"))

    def run_text(self):
        return " ".join(" ".join(command.value) for command in self.of("RUN"))

    def test_the_parser_takes_it_with_instructions_that_there_are(self):
        # The parser refuses what has no arguments where they are needed, but no instruction that it does not know.
        with self.assertRaises(dockerfile.GoParseError):
            dockerfile.parse_string("FROM a\nENV x\n")
        known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "CMD"}
        self.assertLessEqual({command.cmd.upper() for command in self.commands}, known)
        self.assertTrue(all(command.value for command in self.commands))

    def test_each_path_that_is_copied_is_there_and_not_ignored(self):
        ignored = [line for line in read(".dockerignore").splitlines() if line and not line.startswith("#")]
        copied = 0
        for command in self.of("COPY"):
            *sources, _ = command.value
            stages = [flag.removeprefix("--from=") for flag in command.flags if flag.startswith("--from=")]
            if stages:
                names = re.findall(r"^FROM \S+ AS (\w+)$", FILE.read_text(), re.M)
                self.assertIn(stages[0], names)
                continue
            for source in sources:
                with self.subTest(source=source):
                    self.assertTrue((ROOT / source).exists())
                    self.assertNotIn(source, ignored)
                    copied += 1
        self.assertGreater(copied, 5)

    def test_each_member_of_the_workspace_is_copied(self):
        members = {member.split("/")[0] for member in tomllib.loads(read("Cargo.toml"))["workspace"]["members"]}
        copied = {source for command in self.of("COPY") for source in command.value[:-1]}
        self.assertLessEqual(members, copied)

    def test_the_compiler_is_as_new_as_the_workspace_asks_for(self):
        wanted = tomllib.loads(read("Cargo.toml"))["workspace"]["package"]["rust-version"]
        self.assertEqual(self.images()["BUILD_IMAGE"].split(":")[1].split("-")[0], wanted)

    def test_each_image_that_it_builds_on_can_be_given_by_digest(self):
        self.assertEqual([command.value[0] for command in self.of("FROM")], [f"${{{name}}}" for name in self.images()])

    def test_each_binary_that_a_manifest_starts_is_built_and_installed(self):
        started = {container["command"][0] for overlay in OVERLAYS for one in workloads(build(overlay)) if is_service(one) for container in containers(one)}
        self.assertEqual(started, {f"/usr/local/bin/{name}" for name in services()})
        text = self.run_text()
        for name in [*services(), "thresher"]:
            self.assertIn(f"--package {name} ", text)
            self.assertIn(f"target/dist/{name} ", text)
            self.assertTrue((ROOT / f"services/{name}/src/main.rs").is_file())

    def test_it_does_not_run_as_root_and_as_whom_the_manifests_say(self):
        (user,) = self.of("USER")
        uid = int(user.value[0].split(":")[0])
        for overlay in OVERLAYS:
            for one in filter(is_service, workloads(build(overlay))):
                self.assertEqual(one["spec"]["template"]["spec"]["securityContext"]["runAsUser"], uid)

    def test_what_it_starts_by_itself_is_a_command(self):
        (command,) = self.of("CMD")
        self.assertTrue(command.json)
        self.assertEqual(command.value[0], "thresher", json.dumps(command.value))


if __name__ == "__main__":
    unittest.main()
