#!/usr/bin/env bash
# A timeout of 1 s, and a server that sends its headers at once, and then a byte each 300 ms for
# 3 s. With 15 of 26 options of 23 clients it is read to the end: to them, the time between two
# bytes counts, or that until the headers. Among these are a `total` timeout of urllib3 and
# niquests, and that of a request of Java's own client. axios reads it, and with its adapter for
# `fetch` times out by the same option; needle reads it with `timeout`, and not with
# `read_timeout`; ky and ofetch read it, where `fetch` with a signal does not.
# Guessed before the run: a `total` ends it, and so do axios, got and half of the others.
. "$(dirname "$0")/lib.sh"
cat >"$work/server.py" <<'PYTHON'
import socket
import threading
import time


def serve(client):
    try:
        client.recv(65536)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(0.3)
            client.sendall(b"x")
    except OSError:
        pass
    client.close()


server = socket.create_server(("127.0.0.1", 0), backlog=100)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
PYTHON
/usr/bin/env python3 "$work/server.py" >"$work/port" &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
until [ -s "$work/port" ]; do sleep 0.1; done
URL=http://127.0.0.1:$(cat "$work/port")/
export URL
python requests==2.34.2 urllib3==2.8.0 httpx==0.28.1 httplib2==0.32.1 aiohttp==3.14.5 \
  niquests==3.21.2 pycurl==7.49.0 tornado==6.6.1 <<'PYTHON'
import asyncio
import io
import os
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import httplib2
import httpx
import niquests
import pycurl
import requests
import urllib3
from tornado.httpclient import AsyncHTTPClient

URL = os.environ["URL"]


async def with_aiohttp():
    timeout = aiohttp.ClientTimeout(total=1)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(URL) as answer:
        return await answer.text()


async def with_tornado():
    return (await AsyncHTTPClient().fetch(URL, request_timeout=1)).body


def with_pycurl():
    curl, body = pycurl.Curl(), io.BytesIO()
    for option, value in {curl.URL: URL, curl.TIMEOUT: 1, curl.NOSIGNAL: 1,
                          curl.WRITEDATA: body}.items():
        curl.setopt(option, value)
    curl.perform()
    return body.getvalue()


def end(read):
    try:
        return f"reads {len(read())} bytes"
    except Exception:
        return "times out"


CLIENTS = {
    "requests, timeout": lambda: requests.get(URL, timeout=1).text,
    "urllib3, total": lambda: urllib3.PoolManager().request(
        "GET", URL, timeout=urllib3.Timeout(total=1), retries=False).data,
    "httpx, timeout": lambda: httpx.get(URL, timeout=1).text,
    "httplib2, timeout": lambda: httplib2.Http(timeout=1).request(URL)[1],
    "niquests, total": lambda: niquests.get(
        URL, timeout=niquests.TimeoutConfiguration(total=1)).text,
    "aiohttp, total": lambda: asyncio.run(with_aiohttp()),
    "pycurl, TIMEOUT": with_pycurl,
    "tornado, request_timeout": lambda: asyncio.run(with_tornado()),
}
with ThreadPoolExecutor(len(CLIENTS)) as threads:
    for client, seen in zip(CLIENTS, threads.map(end, CLIENTS.values())):
        print(f"{client} (Python): {seen}")
PYTHON
mv "$work/seen" "$work/all"
node axios@1.21.1 ky@1.14.3 got@14.6.6 ofetch@1.5.1 needle@3.5.0 superagent@10.4.2 \
  undici@7.30.2 gaxios@7.3.1 urllib@4.9.2 \
  node-fetch@2.7.0 @azure/core-rest-pipeline@1.24.0 <<'JS'
import { createRequire } from "node:module";
import got from "got";
import ky from "ky";
import { ofetch } from "ofetch";
import { request } from "undici";

const require = createRequire(import.meta.url);
const url = process.env.URL;
const clients = {
  "axios, timeout": async () => (await require("axios").get(url, { timeout: 1000 })).data,
  "axios with fetch, timeout": async () =>
    (await require("axios").get(url, { timeout: 1000, adapter: "fetch" })).data,
  "ky, timeout": () => ky(url, { timeout: 1000, retry: 0 }).text(),
  "got, timeout.request": () =>
    got(url, { timeout: { request: 1000 }, retry: { limit: 0 } }).text(),
  "ofetch, timeout": () => ofetch(url, { timeout: 1000, retry: 0 }),
  "needle, timeout": async () =>
    (await require("needle")("get", url, { timeout: 1000 })).body.toString(),
  "needle, read_timeout": async () =>
    (await require("needle")("get", url, { read_timeout: 1000 })).body.toString(),
  "superagent, timeout": async () => (await require("superagent").get(url).timeout(1000)).text,
  "undici, bodyTimeout": async () => (await request(url, { bodyTimeout: 1000 })).body.text(),
  "fetch, AbortSignal": async () =>
    (await fetch(url, { signal: AbortSignal.timeout(1000) })).text(),
  "gaxios, timeout": async () =>
    (await require("gaxios").request({ url, timeout: 1000, responseType: "text" })).data,
  "urllib, timeout": async () =>
    (await require("urllib").request(url, { timeout: 1000 })).data.toString(),
  "node-fetch 2, timeout": async () =>
    (await require("node-fetch")(url, { timeout: 1000 })).text(),
  "@azure/core-rest-pipeline, timeout": async () => {
    const azure = require("@azure/core-rest-pipeline");
    const get = azure.createPipelineRequest({ url, timeout: 1000, allowInsecureConnection: true });
    return (await azure.createDefaultHttpClient().sendRequest(get)).bodyAsText;
  },
};
// Each imports its modules first, so that none waits for another's while its time runs.
for (const name of ["axios", "needle", "superagent", "gaxios", "urllib", "node-fetch",
  "@azure/core-rest-pipeline"]) require(name);
const ends = await Promise.all(Object.values(clients).map((read) =>
  read().then((body) => `reads ${body.length} bytes`, () => "times out")));
Object.keys(clients).forEach((name, at) => console.log(`${name} (JavaScript): ${ends[at]}`));
process.exit();
JS
cat "$work/seen" >>"$work/all"
java com.squareup.okhttp3:okhttp:4.12.0 org.apache.httpcomponents.client5:httpclient5:5.5 <<'JAVA'
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.EntityUtils;

class Main {
    public static void main(String[] none) throws Exception {
        String url = System.getenv("URL");
        Duration second = Duration.ofSeconds(1);
        Map<String, Callable<String>> clients = new LinkedHashMap<>();
        clients.put("java.net.http, timeout", () -> HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(URI.create(url)).timeout(second).build(),
                BodyHandlers.ofString()).body());
        clients.put("OkHttp, callTimeout", () -> new OkHttpClient.Builder().callTimeout(second)
                .build().newCall(new Request.Builder().url(url).build()).execute().body().string());
        clients.put("OkHttp, readTimeout", () -> new OkHttpClient.Builder().readTimeout(second)
                .build().newCall(new Request.Builder().url(url).build()).execute().body().string());
        clients.put("Apache HttpClient, responseTimeout", () -> {
            HttpGet get = new HttpGet(url);
            get.setConfig(RequestConfig.custom().setResponseTimeout(1, TimeUnit.SECONDS).build());
            return HttpClients.createDefault()
                    .execute(get, answer -> EntityUtils.toString(answer.getEntity()));
        });
        for (var client : clients.entrySet()) {
            String end;
            try {
                end = "reads " + client.getValue().call().length() + " bytes";
            } catch (Exception e) {
                end = "times out";
            }
            System.out.println(client.getKey() + " (Java): " + end);
        }
        System.exit(0);
    }
}
JAVA
cat "$work/seen" >>"$work/all"
LC_ALL=C sort -s -t: -k2 "$work/all" >"$work/seen"
seen <<'SEEN'
requests, timeout (Python): reads 10 bytes
urllib3, total (Python): reads 10 bytes
httpx, timeout (Python): reads 10 bytes
httplib2, timeout (Python): reads 10 bytes
niquests, total (Python): reads 10 bytes
axios, timeout (JavaScript): reads 10 bytes
ky, timeout (JavaScript): reads 10 bytes
ofetch, timeout (JavaScript): reads 10 bytes
needle, timeout (JavaScript): reads 10 bytes
undici, bodyTimeout (JavaScript): reads 10 bytes
urllib, timeout (JavaScript): reads 10 bytes
@azure/core-rest-pipeline, timeout (JavaScript): reads 10 bytes
java.net.http, timeout (Java): reads 10 bytes
OkHttp, readTimeout (Java): reads 10 bytes
Apache HttpClient, responseTimeout (Java): reads 10 bytes
aiohttp, total (Python): times out
pycurl, TIMEOUT (Python): times out
tornado, request_timeout (Python): times out
axios with fetch, timeout (JavaScript): times out
got, timeout.request (JavaScript): times out
needle, read_timeout (JavaScript): times out
superagent, timeout (JavaScript): times out
fetch, AbortSignal (JavaScript): times out
gaxios, timeout (JavaScript): times out
node-fetch 2, timeout (JavaScript): times out
OkHttp, callTimeout (Java): times out
SEEN
