// What the stream said of each queue in the last minutes: rates and sparklines come from it. It is
// kept while the browser's tab is open, so that going back to a page does not begin anew.

const SAMPLE_MILLIS = 2000;
const SAMPLES_MAX = 90;
const RATE_MILLIS = 10_000;
const QUEUES_MAX = 1000;

class Live {
  #queues = new Map();

  // The newest figures of some queues.
  take(queues) {
    for (const queue of queues) {
      const known = this.#queues.get(queue.name) ?? { samples: [] };
      known.latest = queue;
      // The queue that was not heard of for longest is the first one.
      this.#queues.delete(queue.name);
      this.#queues.set(queue.name, known);
    }
    while (this.#queues.size > QUEUES_MAX) this.#queues.delete(this.#queues.keys().next().value);
    this.sample();
  }

  // The stream is silent while nothing changes, and time goes on: call this now and then.
  sample() {
    const at = performance.now();
    for (const known of this.#queues.values()) {
      const last = known.samples.at(-1);
      if (last && at - last.at < SAMPLE_MILLIS) continue;
      known.samples.push({ at, ...known.latest });
      if (known.samples.length > SAMPLES_MAX) known.samples.shift();
    }
  }

  // How much a total grew per second lately; null if that is not known yet.
  rate(name, key) {
    const samples = this.#queues.get(name)?.samples ?? [];
    const last = samples.at(-1);
    const first = samples.find((one) => last.at - one.at <= RATE_MILLIS);
    if (!first || first === last || last[key] === undefined) return null;
    return Math.max(0, (last[key] - first[key]) * 1000 / (last.at - first.at));
  }

  values(name, key) {
    return (this.#queues.get(name)?.samples ?? []).map((one) => one[key] ?? 0);
  }
}

export const live = new Live();
export { SAMPLE_MILLIS };
