"""What must hold of the files in packaging/fleet: each check gives what is wrong, in words.

They are checked as data, without Docker and without a cluster: whatever a file names must be there,
and say the same wherever it is said twice.
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import tomllib

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLEET = ROOT / "packaging" / "fleet"
KUBERNETES = FLEET / "kubernetes"

# Fields without which the API refuses an object of the kind.
REQUIRED = {
    "Service": ["spec.selector", "spec.ports"],
    "PodDisruptionBudget": ["spec.maxUnavailable", "spec.selector.matchLabels"],
    "Job": ["spec.template.spec.restartPolicy", "spec.template.spec.containers"],
    "StatefulSet": ["spec.serviceName", "spec.replicas", "spec.selector.matchLabels",
                    "spec.template.metadata.labels", "spec.template.spec.containers",
                    "spec.volumeClaimTemplates"],
}
API_VERSION = {"Service": "v1", "PodDisruptionBudget": "policy/v1", "Job": "batch/v1",
               "StatefulSet": "apps/v1"}


def field(value, path):
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", str(text))[1])


def flag(command, name):
    """The value of a flag, given as --name VALUE or --name=VALUE."""
    for index, word in enumerate(command):
        if word == name:
            return command[index + 1]
        if word.startswith(name + "="):
            return word.partition("=")[2]
    return None


class Image:
    """What packaging/Dockerfile says of the image that the files run."""

    def __init__(self):
        text = (ROOT / "packaging" / "Dockerfile").read_text()
        self.environment = dict(re.findall(r"(STANCHION_[A-Z]+)=(\S+)", text.split("\nENV ")[-1]))
        self.uid = int(re.search(r"--uid (\d+)", text)[1])
        self.port = int(self.environment["STANCHION_LISTEN"].rpartition(":")[2])


def stop_seconds():
    """How long a node may take to end after SIGTERM, as the program has it."""
    text = (ROOT / "src" / "server" / "server.cc").read_text()
    names = ("kGiveAwayTimeMax", "kDrainTimeMax", "kHistoryTimeMax")
    return sum(int(re.search(rf"{name}\((\d+)\)", text)[1]) for name in names)


def names_registry(image):
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost")


def is_operators(file):
    """Whether it is a secret that the operator makes: Git never sees such a file."""
    ignored = "/packaging/fleet/**/*.secret" in (ROOT / ".gitignore").read_text().splitlines()
    return ignored and file.endswith(".secret")


# The compose file.

def read_compose():
    return yaml.safe_load((FLEET / "compose.yaml").read_text())


def of_kind(compose, word):
    """The services whose command begins with the word; with None those of Kafka."""
    return {name: service for name, service in compose["services"].items()
            if (service.get("command") or [None])[0] == word}


def check_compose_references(compose):
    used_volumes, used_secrets, used_ports = [], set(), []
    for name, service in compose["services"].items():
        if not service.get("image"):
            yield f"{name} has no image"
        elif names_registry(service["image"]):
            yield f"{name}: {service['image']} names a registry"
        used_volumes += [volume.split(":")[0] for volume in service.get("volumes", [])]
        used_secrets |= set(service.get("secrets", []))
        used_ports += [port.rpartition(":")[0] for port in service.get("ports", [])]
        for other, how in service.get("depends_on", {}).items():
            target = compose["services"].get(other)
            if target is None:
                yield f"{name} waits for {other}, which is not there"
            elif (how["condition"] == "service_healthy"
                  and "test" not in target.get("healthcheck", {})):
                yield f"{name} waits for the health of {other}, which has no check"
            elif (how["condition"] == "service_completed_successfully"
                  and target.get("restart") not in (None, "no", "on-failure")):
                yield f"{name} waits for the end of {other}, which is started again"
    if sorted(used_volumes) != sorted(compose["volumes"]):
        yield f"volumes {sorted(used_volumes)} are used, {sorted(compose['volumes'])} are there"
    if used_secrets != set(compose["secrets"]):
        yield f"secrets {used_secrets} are used, {set(compose['secrets'])} are there"
    for name, secret in compose["secrets"].items():
        if not is_operators(secret["file"]):
            yield f"the secret {name} could get into the repository: {secret['file']}"
    if len(set(used_ports)) != len(used_ports):
        yield f"a port is published twice: {used_ports}"


def check_compose_nodes(compose, image):
    nodes = of_kind(compose, "serve")
    zones = [flag(node["command"], "--zone") for node in nodes.values()]
    if len(nodes) != 3 or len(set(zones)) != 3:
        yield f"there are {len(nodes)} nodes, in the zones {zones}"
    internal_ports = set()
    for name, node in nodes.items():
        host, _, port = flag(node["command"], "--internal").partition(":")
        internal_ports.add(port)
        if not name == node["hostname"] == flag(node["command"], "--node") == host:
            yield f"{name} has another name in hostname, --node or --internal"
        if seconds(node["stop_grace_period"]) < stop_seconds() + 5:
            yield (f"{name} is killed after {node['stop_grace_period']}; "
                   f"a stop takes {stop_seconds()} s")
        if node["healthcheck"]["test"] != ["CMD", "stanchion", "health"]:
            yield f"{name} has another check of its health: {node['healthcheck']}"
        if node["volumes"] != [f"{name}:{image.environment['STANCHION_DATA']}"]:
            yield f"{name} has its data elsewhere: {node['volumes']}"
        for published in node["ports"]:
            address, _, inside = published.rpartition(":")
            if int(inside) != image.port:
                yield f"{name}: nobody listens on the published port {inside}"
            if "STANCHION_INSECURE" in node["environment"] and not address.startswith("127.0.0.1:"):
                yield f"{name} is open to everybody: {published}"
        if not node["read_only"] or node["cap_drop"] != ["ALL"]:
            yield f"{name} may do more than it needs"
        for secret in node["secrets"]:
            if node["environment"]["STANCHION_FLEET_SECRET_FILE"] != f"/run/secrets/{secret}":
                yield f"{name}: the secret {secret} is not where the node looks for it"
    if len(internal_ports) != 1 or str(image.port) in internal_ports:
        yield f"the internal ports are {internal_ports}"


def recommended_settings():
    """The lines about Kafka's brokers in docs/fleet.md."""
    text = (ROOT / "docs" / "fleet.md").read_text()
    return dict(re.findall(r"^    ([a-z.]+)=(\d+)$", text, re.MULTILINE))


def settings_on_trial(broker):
    """What scripts/fleet-kafka gives the broker, with which the tests run."""
    path = str(ROOT / "scripts" / "fleet-kafka")
    loader = importlib.machinery.SourceFileLoader("fleet_kafka", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fleet_kafka", loader))
    loader.exec_module(module)
    return dict(line.split("=", 1) for line in module.settings(broker).splitlines())


def kafka_settings(service):
    """What the image apache/kafka makes of a broker's environment."""
    return {name.removeprefix("KAFKA_").replace("_", ".").lower(): str(value)
            for name, value in service["environment"].items()
            if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS"}


def check_compose_kafka(compose):
    brokers = of_kind(compose, None)
    known, recommended = settings_on_trial(1), recommended_settings()
    if len(recommended) < 4:
        yield f"docs/fleet.md recommends only {recommended}"
    seen = {"node.id": set(), "broker.rack": set()}
    for name, broker in brokers.items():
        its = kafka_settings(broker)
        for unknown in sorted(set(its) - set(known)):
            yield f"{name}: {unknown} is no setting that was ever tried"
        for setting, value in recommended.items():
            if its.get(setting) != value:
                yield f"{name}: {setting} is {its.get(setting)}, docs/fleet.md says {value}"
        for setting in ("min.insync.replicas", "default.replication.factor", "message.max.bytes",
                        "unclean.leader.election.enable", "replica.fetch.max.bytes"):
            if its.get(setting) != known[setting]:
                yield f"{name}: {setting} is {its.get(setting)}, and not {known[setting]}"
        if its["advertised.listeners"] != f"BROKER://{name}:9092" or broker["hostname"] != name:
            yield f"{name} is not reached under its name: {its['advertised.listeners']}"
        if f"{its['node.id']}@{name}:9093" not in its["controller.quorum.voters"].split(","):
            yield f"{name} has no vote: {its['controller.quorum.voters']}"
        if not any(volume.endswith(":" + its["log.dirs"]) for volume in broker["volumes"]):
            yield f"{name} keeps its log outside of its volume"
        for setting, values in seen.items():
            values.add(its[setting])
    if any(len(values) != 3 for values in seen.values()):
        yield f"the brokers are not three: {seen}"
    zones = {flag(node["command"], "--zone") for node in of_kind(compose, "serve").values()}
    if seen["broker.rack"] != zones:
        yield f"racks {seen['broker.rack']} are not the zones {zones}"
    addresses = ",".join(f"{name}:9092" for name in brokers)
    for name, service in {**of_kind(compose, "serve"), **of_kind(compose, "fleet")}.items():
        if service["environment"]["STANCHION_FLEET_KAFKA"] != addresses:
            yield f"{name} looks for Kafka elsewhere"


def check_compose(compose, image):
    return [*check_compose_references(compose), *check_compose_nodes(compose, image),
            *check_compose_kafka(compose)]


# The manifests of Kubernetes.

def read_kubernetes():
    """The kustomization, the objects by kind and name, and the settings that all nodes have."""
    customs = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    objects = {}
    for name in customs["resources"]:
        for thing in yaml.safe_load_all((KUBERNETES / name).read_text()):
            objects[thing["kind"], thing["metadata"]["name"]] = thing
    settings = tomllib.loads((KUBERNETES / "stanchion.toml").read_text())
    return {"kustomization": customs, "objects": objects, "settings": settings}


def kind_of(manifests, kind):
    return {name: thing for (its, name), thing in manifests["objects"].items() if its == kind}


def pods(manifests):
    """(owner, specification of its pods) of everything that has pods."""
    for kind in ("StatefulSet", "Job"):
        for name, thing in kind_of(manifests, kind).items():
            yield name, thing, thing["spec"]["template"]["spec"]


def matches(selector, labels):
    return bool(selector) and all(labels.get(name) == value for name, value in selector.items())


def check_kustomization(manifests):
    customs = manifests["kustomization"]
    there = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    if there != set(customs["resources"]):
        yield f"{there} are there, {customs['resources']} are listed"
    images = {image["name"] for image in customs["images"]}
    for image in customs["images"]:
        if names_registry(image["newName"]):
            yield f"{image['newName']} names a registry"
    for owner, _, pod in pods(manifests):
        if pod["containers"][0]["image"] not in images:
            yield f"{owner}: the image {pod['containers'][0]['image']} is not set"
    for generated in customs["secretGenerator"]:
        for name in generated["files"]:
            if not is_operators(name) and not (KUBERNETES / name).exists():
                yield f"{name} is neither there nor a secret that the operator makes"
    if not customs["generatorOptions"]["disableNameSuffixHash"]:
        yield "the name of the secret changes with what is in it"


def check_required_fields(manifests):
    for (kind, name), thing in manifests["objects"].items():
        if thing["apiVersion"] != API_VERSION.get(kind):
            yield f"{name}: {kind} is not in {thing['apiVersion']}"
        for path in REQUIRED.get(kind, []):
            if field(thing, path) is None:
                yield f"{name}: {path} is missing"


def check_selectors(manifests):
    sets = kind_of(manifests, "StatefulSet")
    jobs = kind_of(manifests, "Job")
    for name, thing in sets.items():
        labels = thing["spec"]["template"]["metadata"]["labels"]
        if not matches(thing["spec"]["selector"]["matchLabels"], labels):
            yield f"{name} does not select its own pods"
        for other in (set(sets) - {name}):
            if matches(thing["spec"]["selector"]["matchLabels"],
                       sets[other]["spec"]["template"]["metadata"]["labels"]):
                yield f"{name} selects pods of {other}"
    chosen = {name: its["spec"]["selector"] for name, its in kind_of(manifests, "Service").items()}
    for name, its in kind_of(manifests, "PodDisruptionBudget").items():
        chosen[f"budget {name}"] = its["spec"]["selector"]["matchLabels"]
    for name, selector in chosen.items():
        if not all(matches(selector, its["spec"]["template"]["metadata"]["labels"])
                   for its in sets.values()):
            yield f"{name} does not select all nodes"
        if any(matches(selector, its["spec"]["template"]["metadata"]["labels"])
               for its in jobs.values()):
            yield f"{name} selects the pod of a job"


def check_services(manifests):
    services = kind_of(manifests, "Service")
    for set_name, thing in kind_of(manifests, "StatefulSet").items():
        ports = {port["name"] for port in
                 thing["spec"]["template"]["spec"]["containers"][0]["ports"]}
        for name, service in services.items():
            for port in service["spec"]["ports"]:
                if port["targetPort"] not in ports:
                    yield f"{name}: {set_name} has no port {port['targetPort']}"
        headless = services.get(thing["spec"]["serviceName"])
        if headless is None or headless["spec"].get("clusterIP") != "None":
            yield f"{set_name}: {thing['spec']['serviceName']} is no headless service"
        elif not headless["spec"].get("publishNotReadyAddresses"):
            yield f"{set_name}: its nodes have no names before they are ready"


def check_volumes(manifests):
    secrets = {one["name"]: one["files"] for one in manifests["kustomization"]["secretGenerator"]}
    for owner, thing, pod in pods(manifests):
        claims = [claim["metadata"]["name"]
                  for claim in thing["spec"].get("volumeClaimTemplates", [])]
        there = [volume["name"] for volume in pod.get("volumes", [])] + claims
        mounted = {mount["name"]: mount["mountPath"]
                   for mount in pod["containers"][0]["volumeMounts"]}
        if sorted(there) != sorted(mounted):
            yield f"{owner}: {sorted(mounted)} are mounted, {sorted(there)} are there"
        for volume in pod.get("volumes", []):
            if volume["secret"]["secretName"] not in secrets:
                yield f"{owner}: there is no secret {volume['secret']['secretName']}"
            if volume["secret"]["defaultMode"] & 0o007:
                yield f"{owner}: everybody can read its secrets"
        if mounted.get("settings") != "/etc/stanchion":
            yield f"{owner} does not find its settings in {mounted.get('settings')}"
        data = flag(pod["containers"][0]["args"], "--data")
        if data and not data.startswith(mounted.get("data", "nowhere") + "/"):
            yield f"{owner}: {data} is not on its volume"
    settings = manifests["settings"]
    paths = [settings["fleet"]["secret_file"]]
    paths += [key["secret_file"] for account in settings["account"] for key in account["key"]]
    for path in paths:
        if path not in [f"/etc/stanchion/{name}" for files in secrets.values() for name in files]:
            yield f"stanchion.toml: {path} is in no secret"


def check_security(manifests, image):
    for owner, _, pod in pods(manifests):
        context, container = pod["securityContext"], pod["containers"][0]
        if not context["runAsNonRoot"] or context["runAsUser"] != image.uid:
            yield f"{owner} does not run as uid {image.uid}, the image's"
        if context["fsGroup"] != context["runAsGroup"]:
            yield f"{owner} cannot write to its volumes"
        inner = container["securityContext"]
        if (inner["allowPrivilegeEscalation"] or not inner["readOnlyRootFilesystem"]
                or inner["capabilities"]["drop"] != ["ALL"]):
            yield f"{owner} may do more than it needs"
        if pod["enableServiceLinks"] or pod["automountServiceAccountToken"]:
            yield f"{owner} is told what is not for it"
        if not {"cpu", "memory"} <= set(container["resources"]["requests"]):
            yield f"{owner} does not say what it needs"


def check_probes(manifests, image):
    for name, thing in kind_of(manifests, "StatefulSet").items():
        pod = thing["spec"]["template"]["spec"]
        container = pod["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        if ports.get("sqs") != image.port:
            yield f"{name}: nobody listens on {ports.get('sqs')}"
        if not flag(container["args"], "--internal").endswith(f":{ports.get('internal')}"):
            yield f"{name}: --internal has another port than {ports.get('internal')}"
        for probe, path in (("startupProbe", "/health/live"), ("livenessProbe", "/health/live"),
                            ("readinessProbe", "/health/ready")):
            asked = container[probe]["httpGet"]
            if asked["path"] != path or asked["port"] != "sqs":
                yield f"{name}: {probe} asks {asked}"
        before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        if pod["terminationGracePeriodSeconds"] < before + stop_seconds() + 5:
            yield (f"{name} is killed after {pod['terminationGracePeriodSeconds']} s; "
                   f"a stop takes {before} + {stop_seconds()} s")


DIFFERENT = "the three sets differ in more than their names and zones"


def zone_of(thing):
    terms = thing["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    expression = terms[0]["matchExpressions"][0]
    assert (expression["key"], expression["operator"]) == ("topology.kubernetes.io/zone", "In")
    return expression["values"][0]


def check_zones(manifests):
    sets = kind_of(manifests, "StatefulSet")
    if len(sets) != 3 or len({zone_of(thing) for thing in sets.values()}) != 3:
        yield f"{sorted(sets)} are not three sets in three zones"
    alike = set()
    for name, thing in sets.items():
        args = thing["spec"]["template"]["spec"]["containers"][0]["args"]
        zone = zone_of(thing)
        if flag(args, "--zone") != zone:
            yield f"{name} says that it is in {flag(args, '--zone')}, and is put into {zone}"
        if thing["spec"]["updateStrategy"]["type"] != "OnDelete":
            yield f"{name} is restarted while the others are"
        alike.add(yaml.safe_dump(thing).replace(zone, "ZONE").replace(name, "NAME"))
    if len(alike) != 1:
        yield DIFFERENT


def check_variables(manifests):
    for owner, thing, pod in pods(manifests):
        container = pod["containers"][0]
        env = {variable["name"]: field(variable, "valueFrom.fieldRef.fieldPath")
               for variable in container.get("env", [])}
        for name in re.findall(r"\$\((\w+)\)", " ".join(container["args"])):
            if name not in env:
                yield f"{owner}: there is no variable {name}"
        if env and env != {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}:
            yield f"{owner}: the variables are {env}"


def check_kubernetes(manifests, image):
    return [*check_kustomization(manifests), *check_required_fields(manifests),
            *check_selectors(manifests), *check_services(manifests), *check_volumes(manifests),
            *check_security(manifests, image), *check_probes(manifests, image),
            *check_zones(manifests), *check_variables(manifests)]
