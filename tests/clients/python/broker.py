"""The server as a broker of kombu and Celery."""
import os
import urllib.parse

_key, _secret = (urllib.parse.quote(os.environ[name], safe="")
                 for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))

URL = f"sqs://{_key}:{_secret}@{urllib.parse.urlsplit(os.environ['STANCHION_ENDPOINT']).netloc}"
OPTIONS = {"region": os.environ["AWS_DEFAULT_REGION"], "is_secure": False, "wait_time_seconds": 5}
