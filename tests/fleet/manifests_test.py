#!/usr/bin/env python3
"""Reads the compose file and the Kubernetes manifests of a fleet, and gives their commands to the
real program.

    manifests_test.py --binary build/release/stanchion

Nothing is started: what the files name must be there, and the program must understand every command
line as it is meant. Each break at the end spoils one thing, which must be noticed. Where kubectl or
`docker compose` are installed they read the files, too.
"""
import argparse
import copy
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

import manifests as m

SECRET = "0123456789abcdef0123456789abcdef\n"


class Runner:
    """Runs `stanchion` as a container would, with the files of its secrets in `directory`."""

    def __init__(self, binary, directory):
        self.binary = binary
        self.directory = pathlib.Path(directory)
        self.image = m.Image()
        for name in ("fleet.secret", "account.secret", "fleet"):
            (self.directory / name).write_text(SECRET)
            (self.directory / name).chmod(0o600)

    def local(self, text):
        """The same with the paths of the secrets of a container as they are here."""
        for inside in ("/etc/stanchion", "/run/secrets"):
            text = text.replace(inside, str(self.directory))
        return text

    def use_settings(self, text):
        """Puts stanchion.toml where the container has it; the variable that names it."""
        path = self.directory / "stanchion.toml"
        path.write_text(self.local(text))
        path.chmod(0o600)
        return {"STANCHION_CONFIG": str(path)}

    def run(self, words, environment):
        environment = {**self.image.environment, **environment}
        return subprocess.run(
            [self.binary, *map(self.local, words)], capture_output=True, text=True, timeout=60,
            env={name: self.local(value) for name, value in environment.items()},
            cwd=self.directory, check=False)

    def serve(self, words, environment):
        """The settings that the command would serve with."""
        done = self.run([*words, "--print-config"], environment)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return tomllib.loads(done.stdout)

    def fleet(self, words, environment):
        """Accepts everything but one setting that stands behind it, so that Kafka is not asked."""
        done = self.run([*words, "--kafka-setting", "acks=0"], environment)
        assert done.returncode == 2 and "acks" in done.stderr, f"{words}: {done.stderr}"


def text_of(environment):
    return {name: str(value) for name, value in environment.items()}


def check_node(settings, name, zone, host):
    fleet = settings["fleet"]
    assert (fleet["node"], fleet["zone"]) == (name, zone), fleet
    assert fleet["internal"] == host + ":9323", fleet
    assert fleet["kafka"] and fleet["name"] and fleet["secret_file"], fleet
    assert settings["server"]["listen"] == "0.0.0.0:9324", settings["server"]


def run_compose_commands(runner, compose):
    for name, service in m.of_kind(compose, "serve").items():
        settings = runner.serve(service["command"], text_of(service["environment"]))
        check_node(settings, name, m.flag(service["command"], "--zone"), name)
        assert settings["server"]["data"] == "/data", settings["server"]
        done = runner.run(service["healthcheck"]["test"][2:],
                          {**text_of(service["environment"]), "STANCHION_LISTEN": "127.0.0.1:1"})
        assert done.returncode == 1 and "127.0.0.1:1" in done.stderr, done
    for service in m.of_kind(compose, "fleet").values():
        assert service["command"][:2] == ["fleet", "init"], service
        runner.fleet(service["command"], text_of(service["environment"]))


def expanded(words, variables):
    for name, value in variables.items():
        words = [word.replace(f"$({name})", value) for word in words]
    return words


def run_kubernetes_commands(runner, manifests, settings_text):
    environment = runner.use_settings(settings_text)
    for name, thing in m.kind_of(manifests, "StatefulSet").items():
        pod = f"{name}-0"
        words = expanded(thing["spec"]["template"]["spec"]["containers"][0]["args"],
                         {"POD_NAME": pod, "POD_NAMESPACE": "queues"})
        settings = runner.serve(words, environment)
        check_node(settings, pod, m.zone_of(thing),
                   f"{pod}.{thing['spec']['serviceName']}.queues.svc.cluster.local")
        assert settings["server"]["data"] == "/data/stanchion", settings["server"]
    for thing in m.kind_of(manifests, "Job").values():
        words = thing["spec"]["template"]["spec"]["containers"][0]["args"]
        assert words[:2] == ["fleet", "init"], words
        runner.fleet(words, environment)


def the_compose_file_is_whole(runner):
    problems = m.check_compose(m.read_compose(), runner.image)
    assert not problems, "\n".join(problems)


def the_program_understands_the_commands_of_the_compose_file(runner):
    run_compose_commands(runner, m.read_compose())


def the_manifests_are_whole(runner):
    problems = m.check_kubernetes(m.read_kubernetes(), runner.image)
    assert not problems, "\n".join(problems)


def the_program_understands_the_commands_of_the_manifests(runner):
    run_kubernetes_commands(runner, m.read_kubernetes(),
                            (m.KUBERNETES / "stanchion.toml").read_text())


def the_example_of_a_secured_kafka_is_valid_once_it_is_no_comment(runner):
    lines = (m.KUBERNETES / "stanchion.toml").read_text().splitlines()
    first = lines.index("#[fleet.kafka_settings]")
    last = lines.index('#"""')
    lines[first:last + 1] = [line.removeprefix("#") for line in lines[first:last + 1]]
    manifests = m.read_kubernetes()
    environment = runner.use_settings("\n".join(lines))
    thing = m.kind_of(manifests, "StatefulSet")["stanchion-a"]
    words = thing["spec"]["template"]["spec"]["containers"][0]["args"]
    settings = runner.serve(expanded(words, {"POD_NAME": "a", "POD_NAMESPACE": "b"}), environment)
    assert settings["fleet"]["kafka_settings"]["security.protocol"] == "SASL_SSL", settings
    run_kubernetes_commands(runner, manifests, "\n".join(lines))


def kubectl_renders_the_manifests(runner):
    if shutil.which("kubectl") is None:
        return print("note: there is no kubectl here to read the manifests")
    copied = runner.directory / "kubernetes"
    shutil.copytree(m.KUBERNETES, copied)
    refused = subprocess.run(["kubectl", "kustomize", str(copied)], capture_output=True, text=True,
                             check=False)
    assert refused.returncode != 0 and "fleet.secret" in refused.stderr, refused
    for name in ("fleet.secret", "account.secret"):
        (copied / name).write_text(SECRET)
    done = subprocess.run(["kubectl", "kustomize", str(copied)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    rendered = {(thing["kind"], thing["metadata"]["name"]): thing
                for thing in m.yaml.safe_load_all(done.stdout)}
    read = m.read_kubernetes()
    assert set(rendered) == {*read["objects"], ("Secret", "stanchion")}, sorted(rendered)
    images = {pod["containers"][0]["image"] for kind, name in read["objects"]
              if kind in ("StatefulSet", "Job")
              for pod in [rendered[kind, name]["spec"]["template"]["spec"]]}
    chosen = read["kustomization"]["images"][0]
    assert images == {f"{chosen['newName']}:{chosen['newTag']}"}, images


def docker_reads_the_compose_file(runner):
    if shutil.which("docker") is None or subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        return print("note: there is no `docker compose` here to read the compose file")
    file = str(m.FLEET / "compose.yaml")
    done = subprocess.run(["docker", "compose", "-f", file, "config", "-q"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


def put(path, value):
    """A break: the value at the path becomes another; None takes it away."""
    def spoil(data):
        *way, last = path
        for step in way:
            data = data[step]
        if value is None:
            del data[last]
        else:
            data[last] = value
    return spoil


def serve(zone, internal):
    return ["serve", "--node", "node-2", "--zone", zone, "--internal", internal]


NODE = ("services", "node-2")
BROKER = ("services", "kafka-2")
SET = ("objects", ("StatefulSet", "stanchion-b"))
SPEC = (*SET, "spec", "template", "spec")
BOX = (*SPEC, "containers", 0)
JOB = ("objects", ("Job", "stanchion-init"), "spec", "template", "spec")
CLIENTS = ("objects", ("Service", "stanchion"), "spec")
BUDGET = ("objects", ("PodDisruptionBudget", "stanchion"), "spec")
NODES = ("objects", ("Service", "stanchion-nodes"), "spec")

COMPOSE_BREAKS = [
    put(("secrets", "fleet", "file"), "./fleet.txt"),
    put((*NODE, "image"), None), put((*NODE, "image"), "registry.example.com/stanchion"),
    put((*NODE, "volumes"), ["elsewhere:/data"]), put((*NODE, "volumes"), ["node-2:/var/lib"]),
    put(("volumes", "unused"), {}), put((*NODE, "secrets"), ["other"]),
    put((*NODE, "environment", "STANCHION_FLEET_SECRET_FILE"), "/run/secrets/other"),
    put((*NODE, "depends_on"), {"nobody": {"condition": "service_healthy"}}),
    put((*NODE, "depends_on"), {"init": {"condition": "service_healthy"}}),
    put(("services", "init", "restart"), "always"),
    put((*NODE, "ports"), ["127.0.0.1:9324:9324"]), put((*NODE, "ports"), ["9325:9324"]),
    put((*NODE, "ports"), ["127.0.0.1:9325:9325"]), put((*NODE, "hostname"), "node-1"),
    put((*NODE, "command"), serve("a", "node-2:9323")),
    put((*NODE, "command"), serve("b", "node-1:9323")),
    put((*NODE, "command"), serve("b", "node-2:9324")),
    put((*NODE, "stop_grace_period"), "10s"), put((*NODE, "read_only"), False),
    put((*NODE, "healthcheck"), {"test": ["CMD", "curl", "http://localhost:9324/health"]}),
    put((*BROKER, "environment", "KAFKA_NODE_ID"), 1),
    put((*BROKER, "environment", "KAFKA_BROKER_RACK"), "a"),
    put((*BROKER, "environment", "KAFKA_BROKER_SESION_TIMEOUT_MS"), 2000),
    put((*BROKER, "environment", "KAFKA_BROKER_SESSION_TIMEOUT_MS"), 9000),
    put((*BROKER, "environment", "KAFKA_MIN_INSYNC_REPLICAS"), 1),
    put((*BROKER, "environment", "KAFKA_ADVERTISED_LISTENERS"), "BROKER://kafka-1:9092"),
    put((*BROKER, "environment", "KAFKA_LOG_DIRS"), "/tmp/logs"),
    put((*BROKER, "environment", "KAFKA_CONTROLLER_QUORUM_VOTERS"), "1@kafka-1:9093"),
    put((*BROKER, "healthcheck"), {"disable": True}),
    put((*NODE, "environment", "STANCHION_FLEET_KAFKA"), "kafka-1:9093"),
]
KUBERNETES_BREAKS = [
    put(("kustomization", "resources"), ["services.yaml"]),
    put(("kustomization", "images"), [{"name": "other", "newName": "stanchion"}]),
    put(("kustomization", "images"), [{"name": "stanchion", "newName": "r.example.com/stanchion"}]),
    put(("kustomization", "generatorOptions", "disableNameSuffixHash"), False),
    put(("kustomization", "secretGenerator"), [{"name": "stanchion", "files": ["stanchion.toml"]}]),
    put(("kustomization", "secretGenerator", 0, "files", 0), "settings.toml"),
    put(("kustomization", "secretGenerator", 0, "name"), "other"),
    put((*SET, "apiVersion"), "apps/v1beta1"), put((*CLIENTS, "selector"), None),
    put((*SET, "spec", "replicas"), None), put((*JOB, "restartPolicy"), None),
    put((*SET, "spec", "selector", "matchLabels"), {"zone": "elsewhere"}),
    put((*SET, "spec", "selector", "matchLabels"), {"app.kubernetes.io/name": "stanchion"}),
    put((*CLIENTS, "selector"), {"app.kubernetes.io/name": "stanchion"}),
    put((*CLIENTS, "selector"), {"app.kubernetes.io/name": "stanchion", "zone": "zone-a"}),
    put((*BUDGET, "selector", "matchLabels"), {"a": "b"}),
    put((*CLIENTS, "ports", 0, "targetPort"), "http"), put((*NODES, "clusterIP"), None),
    put((*NODES, "publishNotReadyAddresses"), False),
    put((*SET, "spec", "serviceName"), "stanchion"),
    put((*BOX, "volumeMounts", 0, "name"), "disk"),
    put((*BOX, "volumeMounts", 0, "mountPath"), "/var"),
    put((*BOX, "volumeMounts", 1, "mountPath"), "/etc"),
    put((*SPEC, "volumes", 0, "secret", "secretName"), "other"),
    put((*SPEC, "volumes", 0, "secret", "defaultMode"), 0o444),
    put(("settings", "fleet", "secret_file"), "/etc/stanchion/other"),
    put((*SPEC, "securityContext", "runAsUser"), 0), put((*SPEC, "securityContext", "fsGroup"), 1),
    put((*BOX, "securityContext", "readOnlyRootFilesystem"), False),
    put((*SPEC, "enableServiceLinks"), True), put((*JOB, "automountServiceAccountToken"), True),
    put((*BOX, "resources", "requests"), {"cpu": "1"}),
    put((*BOX, "ports", 0, "containerPort"), 8080), put((*BOX, "ports", 1, "containerPort"), 9325),
    put((*BOX, "readinessProbe", "httpGet", "path"), "/health/live"),
    put((*BOX, "livenessProbe", "httpGet", "port"), "internal"),
    put((*SPEC, "terminationGracePeriodSeconds"), 30),
    put((*BOX, "args", 2), "--zone=zone-a"),
    put((*SET, "spec", "updateStrategy", "type"), "RollingUpdate"),
    put((*SPEC, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
         "nodeSelectorTerms", 0, "matchExpressions", 0, "values"), ["zone-a"]),
    put((*BOX, "env", 0, "name"), "POD"),
]
# For the program: a word that it does not know, and values that it refuses or takes for another.
COMMAND_BREAKS = [
    (("args", 1), "--nod=$(POD_NAME)"), (("args", 1), "--node=$(POD_NAM)"),
    (("args", 3), "--internal=0.0.0.0:9323"), (("args", 3), "--internal=$(POD_NAME):9323"),
    (("args", 4), "--data=/data"), (("args", 0), "server"),
]


def every_break_of_a_file_is_noticed(runner):
    compose, manifests = m.read_compose(), m.read_kubernetes()
    unnoticed = []
    for breaks, sound, check in ((COMPOSE_BREAKS, compose, m.check_compose),
                                 (KUBERNETES_BREAKS, manifests, m.check_kubernetes)):
        for index, spoil in enumerate(breaks):
            broken = copy.deepcopy(sound)
            spoil(broken)
            try:
                # That one set of three is different is noticed as well, but says little.
                if not set(check(broken, runner.image)) - {m.DIFFERENT}:
                    unnoticed.append(f"{check.__name__} {index}")
            except (KeyError, AttributeError, TypeError, IndexError):
                pass  # Something that every such file has is gone, which is noticed as well.
    assert not unnoticed, f"not noticed: {unnoticed}"
    put((*SPEC, "priorityClassName"), "high")(manifests)
    assert m.check_kubernetes(manifests, runner.image) == [m.DIFFERENT]


def every_break_of_a_command_is_noticed(runner):
    text = (m.KUBERNETES / "stanchion.toml").read_text()
    for path, value in COMMAND_BREAKS:
        broken = m.read_kubernetes()
        put((*BOX, *path), value)(broken)
        try:
            run_kubernetes_commands(runner, broken, text)
        except (AssertionError, tomllib.TOMLDecodeError):
            continue
        raise AssertionError(f"not noticed: {value}")
    for words in (["fleet", "init", "--shard", "24"], ["fleet", "found"],
                  ["fleet", "init", "--shards", "0"]):
        compose = m.read_compose()
        compose["services"]["init"]["command"] = words
        try:
            run_compose_commands(runner, compose)
        except AssertionError:
            continue
        raise AssertionError(f"not noticed: {words}")


TESTS = (the_compose_file_is_whole, the_program_understands_the_commands_of_the_compose_file,
         the_manifests_are_whole, the_program_understands_the_commands_of_the_manifests,
         the_example_of_a_secured_kafka_is_valid_once_it_is_no_comment,
         kubectl_renders_the_manifests, docker_reads_the_compose_file,
         every_break_of_a_file_is_noticed, every_break_of_a_command_is_noticed)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    good = bad = 0
    for test in TESTS:
        with tempfile.TemporaryDirectory(prefix="stanchion-manifests-") as directory:
            try:
                test(Runner(os.path.abspath(options.binary), directory))
                good += 1
            except Exception as problem:  # The other tests go on whatever it is.
                bad += 1
                print(f"{test.__name__}: {type(problem).__name__}: {problem}")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
