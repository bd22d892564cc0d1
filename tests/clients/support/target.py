"""Where the clients go and with whose credentials: the only place that knows.

Every suite gets both through its environment, in the variables that AWS's own clients read, so no
test names a key. The server is started here too, on a port that the machine chooses.
"""
import os
import pathlib
import subprocess
import tempfile

REGION = "us-east-1"
ACCOUNT = "000000000000"
ACCESS_KEY = "AKIASTANCHIONTESTS00"
SECRET_KEY = "the/secret+key/of/the/tests/of/real/clients"
# Another account, for tests of what accounts may do with each other's queues.
OTHER_ACCOUNT = "222222222222"
OTHER_ACCESS_KEY = "AKIASTANCHIONOTHER00"
OTHER_SECRET_KEY = "another/secret+key"
# A user of that account.
OTHER_USER = "ann"
OTHER_USER_ACCESS_KEY = "AKIASTANCHIONANN0000"
# A temporary key of the first account.
SESSION_ACCESS_KEY = "ASIASTANCHIONTESTS00"
SESSION_TOKEN = "a/token+of==its/own"

ACCOUNTS = f"""
[[account]]
id = "{ACCOUNT}"
[[account.key]]
id = "{ACCESS_KEY}"
secret = "{SECRET_KEY}"
[[account.key]]
id = "{SESSION_ACCESS_KEY}"
secret = "{SECRET_KEY}"
session_token = "{SESSION_TOKEN}"

[[account]]
id = "{OTHER_ACCOUNT}"
[[account.key]]
id = "{OTHER_ACCESS_KEY}"
secret = "{OTHER_SECRET_KEY}"
[[account.key]]
id = "{OTHER_USER_ACCESS_KEY}"
secret = "{OTHER_SECRET_KEY}"
user = "{OTHER_USER}"
"""

# Variables that could make a client behave differently from one machine to the next.
STRAY = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS",
         "AWS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
         "https_proxy", "all_proxy"]


def environment(endpoint):
    """The environment of a suite that talks to `endpoint`."""
    variables = {name: value for name, value in os.environ.items() if name not in STRAY}
    variables.update({
        "STANCHION_ENDPOINT": endpoint,
        "STANCHION_ACCOUNT": ACCOUNT,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_PAGER": "",
        "NO_PROXY": "*",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
    })
    return variables


class Server:
    """One server in its own process.

    With `durable` its data is in a directory of its own, with `accounts` it verifies who calls.
    """

    def __init__(self, binary, durable, accounts, options=()):
        self._directory = tempfile.TemporaryDirectory(prefix="stanchion-clients-")
        data = pathlib.Path(self._directory.name) / "data"
        kind = ["--data", str(data)] if durable else ["--in-memory"]
        config = pathlib.Path(self._directory.name) / "stanchion.toml"
        config.write_text(ACCOUNTS if accounts else "")
        self._log = open(pathlib.Path(self._directory.name) / "log", "w+")
        self._process = subprocess.Popen(
            [str(binary), "serve", *kind, "--config", str(config), "--listen", "127.0.0.1:0",
             "--region", REGION, "--account", ACCOUNT, *options],
            env={name: value for name, value in os.environ.items()
                 if not name.startswith("STANCHION_")},
            stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.endpoint = self._wait_until_ready()

    def _wait_until_ready(self):
        for line in self._process.stdout:
            if line.startswith("ready "):
                return line.split()[1]
        raise RuntimeError(f"the server did not start: {self.log()}")

    def log(self):
        self._log.flush()
        return pathlib.Path(self._log.name).read_text()

    def stop(self):
        """Stops the server and returns its exit status."""
        self._process.terminate()
        self._process.stdout.read()
        status = self._process.wait()
        self._log.close()
        self._directory.cleanup()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()
