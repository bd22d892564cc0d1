"""A Celery application on SQS, as a user would write it; the tests and their workers load it."""
import json
import os

import celery

import broker

app = celery.Celery("tests", broker=broker.URL, backend="file://" + os.environ["CELERY_RESULTS"])
app.conf.update(
    task_default_queue=os.environ["CELERY_QUEUE"],
    broker_transport_options={**broker.OPTIONS, "visibility_timeout": 600,
                              "predefined_queues": json.loads(os.environ["CELERY_PREDEFINED"])},
    worker_enable_remote_control=False,
    task_acks_late=True)


@app.task
def add(a, b):
    return a + b


@app.task
def echo(text):
    return text


@app.task(bind=True, max_retries=3)
def succeed_at_last(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries


@app.task
def fail():
    raise ValueError("as asked")
