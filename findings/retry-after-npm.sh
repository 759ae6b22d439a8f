#!/usr/bin/env bash
# Eleven libraries of npm that ask again after a status of 503, and a server that says when, in a
# `Retry-After`: in 0 s, in 2 s, at a date in 3 s, or at a date that has passed. ky, got,
# axios-retry, undici and @azure/core-rest-pipeline wait for 2 s and for the date,
# @vercel/fetch-retry only for 2 s; four keep to their own pause. retry-axios waits for both, but
# gives up where it may ask at once: after 0 s or a date that has passed, it sends nothing more.
# Guessed before the run: 0 and a past date are "at once" or the usual pause, and a library or two
# does not know dates.
. "$(dirname "$0")/lib.sh"
node ky@1.14.3 got@14.6.6 axios@1.21.1 axios-retry@4.5.0 retry-axios@4.0.3 undici@7.30.2 \
  make-fetch-happen@15.0.6 @vercel/fetch-retry@5.1.3 xior@0.8.5 @adobe/node-fetch-retry@2.2.0 \
  @azure/core-rest-pipeline@1.24.0 gaxios@7.3.1 <<'JS'
import { createServer } from "node:http";
import * as azure from "@azure/core-rest-pipeline";
import adobe from "@adobe/node-fetch-retry";
import vercel from "@vercel/fetch-retry";
import axios from "axios";
import axiosRetry from "axios-retry";
import { Gaxios } from "gaxios";
import got from "got";
import ky from "ky";
import makeFetchHappen from "make-fetch-happen";
import * as retryAxios from "retry-axios";
import * as undici from "undici";
import xior from "xior";
import errorRetry from "xior/plugins/error-retry";

const at = (ms) => new Date(Date.now() + ms).toUTCString();
const headers = {
  none: () => undefined,
  "0": () => "0",
  "2": () => "2",
  date: () => at(3500),
  past: () => at(-3.6e6),
};
const requests = {};
const server = createServer((request, response) => {
  const times = (requests[request.url] ??= []);
  times.push(performance.now());
  const header = headers[request.url.split("-").pop()]();
  if (times.length === 1 && header) response.setHeader("Retry-After", header);
  response.writeHead(times.length === 1 ? 503 : 200).end("ok");
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));

const withAxios = (attach) => {
  const instance = axios.create();
  attach(instance);
  return (url) => instance.get(url);
};
const pipeline = azure.createEmptyPipeline();
pipeline.addPolicy(azure.defaultRetryPolicy());
const withXior = xior.create();
withXior.plugins.use(errorRetry({ retryTimes: 2, retryInterval: 500 }));
const clients = {
  ky: (url) => ky(url).text(),
  got: (url) => got(url).text(),
  "axios-retry": withAxios((instance) =>
    axiosRetry(instance, { retryDelay: axiosRetry.exponentialDelay })),
  "@azure/core-rest-pipeline": (url) => pipeline.sendRequest(azure.createDefaultHttpClient(),
    azure.createPipelineRequest({ url, allowInsecureConnection: true })),
  undici: async (url) => {
    const dispatcher = new undici.RetryAgent(new undici.Agent());
    await (await undici.request(url, { dispatcher })).body.text();
  },
  "retry-axios": withAxios((instance) => {
    instance.defaults.raxConfig = { instance, onRetryAttempt: async () => {} };
    retryAxios.attach(instance);
  }),
  "@vercel/fetch-retry": (url) => vercel(fetch)(url),
  "@adobe/node-fetch-retry": (url) => adobe(url),
  gaxios: (url) => new Gaxios().request({ url, retry: true }),
  "make-fetch-happen": (url) => makeFetchHappen(url, { retry: { retries: 3 } }),
  xior: (url) => withXior.get(url),
};
console.warn = console.error = () => {};
for (const [index, [name, get]] of Object.entries(clients).entries()) {
  const waits = await Promise.all(Object.keys(headers).map(async (header) => {
    const path = `/${index}-${header}`;
    await get(`http://127.0.0.1:${server.address().port}${path}`).catch(() => {});
    const [first, second] = requests[path];
    if (second === undefined) return `${header}: no request`;
    // A pause of its own is up to 1.5 s; the date, in whole seconds, is 2.5 to 3.5 s away.
    return `${header}: ${second - first < 1900 ? "own" : "waits"}`;
  }));
  console.log(`${name}: ${waits.join(", ")}`);
}
process.exit();
JS
seen <<'SEEN'
ky: 0: own, 2: waits, none: own, date: waits, past: own
got: 0: own, 2: waits, none: own, date: waits, past: own
axios-retry: 0: own, 2: waits, none: own, date: waits, past: own
@azure/core-rest-pipeline: 0: own, 2: waits, none: own, date: waits, past: own
undici: 0: own, 2: waits, none: own, date: waits, past: own
retry-axios: 0: no request, 2: waits, none: own, date: waits, past: no request
@vercel/fetch-retry: 0: own, 2: waits, none: own, date: own, past: own
@adobe/node-fetch-retry: 0: own, 2: own, none: own, date: own, past: own
gaxios: 0: own, 2: own, none: own, date: own, past: own
make-fetch-happen: 0: own, 2: own, none: own, date: own, past: own
xior: 0: own, 2: own, none: own, date: own, past: own
SEEN
