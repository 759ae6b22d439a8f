#!/usr/bin/env bash
# autocannon 9.0.0: with a rate (`-r` or `-R`), it corrects its latencies for coordinated
# omission, but by an interval of 1 ms whatever the rate is. Each answer of n ms adds n - 1
# samples that were never measured, and a server that takes 100 ms for each request is said to
# take 50 on average. With `--ignoreCoordinatedOmission`, the mean is right.
# Guessed, before it was run beside other load generators: the mean is right.
. "$(dirname "$0")/lib.sh"
node autocannon@9.0.0 <<'JS'
import { createServer } from "node:http";
import autocannon from "autocannon";

const server = createServer((request, response) => setTimeout(() => response.end(), 100));
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const names = (options) => Object.keys(options).join(", ") || "no rate";
const url = `http://127.0.0.1:${server.address().port}`;
for (const options of [{}, { connectionRate: 5 }, { overallRate: 5 },
  { overallRate: 5, ignoreCoordinatedOmission: true }]) {
  const { latency, requests } = await autocannon({ url, connections: 1, duration: 4, ...options });
  const about = (value) => (value < 20 ? "1" : value < 80 ? "50" : "100");
  const samples = latency.totalCount > 2 * requests.total ? "about 100 samples" : "1 sample";
  console.log(`${names(options)}: ${samples} a request, ` +
    `least about ${about(latency.min)} ms, mean about ${about(latency.average)} ms`);
}
process.exit();
JS
seen <<'SEEN'
no rate: 1 sample a request, least about 100 ms, mean about 100 ms
connectionRate: about 100 samples a request, least about 1 ms, mean about 50 ms
overallRate: about 100 samples a request, least about 1 ms, mean about 50 ms
overallRate, ignoreCoordinatedOmission: 1 sample a request, least about 100 ms, mean about 100 ms
SEEN
