// @aws-sdk/client-cloudwatch against the server at STANCHION_ENDPOINT, whose time can be moved.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import * as sdk from "@aws-sdk/client-cloudwatch";
import { call as sqs, close, freshName, target } from "./support.mjs";

const watch = new sdk.CloudWatchClient({ endpoint: target.endpoint, maxAttempts: 1 });
const call = (action, input) => watch.send(new sdk[`${action}Command`](input));

async function clock(method, body) {
  const answer = await fetch(`${target.endpoint}/_stanchion/clock`, {
    method,
    body: body && JSON.stringify(body),
    headers: { "X-Stanchion-Control": "1" },
  });
  return new Date((await answer.json()).nowMillis);
}
const minutePasses = () => clock("POST", { advanceSeconds: 60 });

async function queueWith(...minutes) {
  const name = freshName();
  const { QueueUrl } = await sqs("CreateQueue", { QueueName: name });
  for (const count of minutes) {
    for (let i = 0; i < count; ++i) await sqs("SendMessage", { QueueUrl, MessageBody: "hello" });
    await minutePasses();
  }
  return name;
}

async function range() {
  const EndTime = await clock("GET");
  return { StartTime: new Date(EndTime.getTime() - 3600_000), EndTime };
}

const metric = (queue, MetricName) => ({
  Namespace: "AWS/SQS",
  MetricName,
  Dimensions: [{ Name: "QueueName", Value: queue }],
});
const sum = (values) => values.reduce((a, b) => a + b, 0);

test("statistics have exactly what was sent", async () => {
  const queue = await queueWith(3, 4);
  const answer = await call("GetMetricStatistics", {
    ...metric(queue, "NumberOfMessagesSent"),
    ...(await range()),
    Period: 60,
    Statistics: ["Sum"],
  });
  assert.equal(answer.Label, "NumberOfMessagesSent");
  assert.equal(sum(answer.Datapoints.map((point) => point.Sum)), 7);
  for (const point of answer.Datapoints) {
    assert.equal(point.Unit, "Count");
    assert.equal(point.Timestamp.getTime() % 60_000, 0);
  }
});

test("an autoscaler finds the backlog per worker", async () => {
  const queue = await queueWith(10);
  const answer = await call("GetMetricData", {
    ...(await range()),
    MetricDataQueries: [
      {
        Id: "m1",
        ReturnData: false,
        MetricStat: {
          Metric: metric(queue, "ApproximateNumberOfMessagesVisible"),
          Period: 60,
          Stat: "Maximum",
        },
      },
      { Id: "backlog", Expression: "FILL(m1, REPEAT) / 4", Label: "backlog per worker" },
    ],
  });
  const [result] = answer.MetricDataResults;
  assert.equal(result.Id, "backlog");
  assert.equal(result.Label, "backlog per worker");
  assert.equal(result.StatusCode, "Complete");
  assert.equal(result.Values[0], 2.5);
  assert.ok(result.Timestamps[0] instanceof Date);
});

test("pages have all values once", async () => {
  const queue = await queueWith(1, 2, 3);
  const input = {
    ...(await range()),
    MaxDatapoints: 2,
    MetricDataQueries: [
      {
        Id: "m1",
        MetricStat: { Metric: metric(queue, "NumberOfMessagesSent"), Period: 60, Stat: "Sum" },
      },
    ],
  };
  const values = [];
  for await (const page of sdk.paginateGetMetricData({ client: watch }, input))
    for (const result of page.MetricDataResults) values.push(...result.Values);
  assert.ok(values.length >= 3);
  assert.equal(sum(values), 6);
});

test("metrics are listed", async () => {
  const queue = await queueWith(1);
  const { Metrics } = await call("ListMetrics", {
    Namespace: "AWS/SQS",
    Dimensions: [{ Name: "QueueName", Value: queue }],
  });
  const names = Metrics.map((one) => one.MetricName);
  assert.equal(names.length, 9);
  assert.ok(names.includes("ApproximateAgeOfOldestMessage"));
});

test("errors are the SDK's own", async () => {
  await assert.rejects(
    call("GetMetricStatistics", {
      ...metric("q", "NumberOfMessagesSent"),
      ...(await range()),
      Period: 61,
      Statistics: ["Sum"],
    }),
    sdk.InvalidParameterValueException,
  );
  await assert.rejects(call("ListMetrics", { NextToken: "nonsense" }), sdk.InvalidNextToken);
  await assert.rejects(call("PutMetricData", { Namespace: "Mine", MetricData: [] }), /PutMetricData/);
});

after(() => {
  watch.destroy();
  close();
});
