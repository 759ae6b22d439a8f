#!/usr/bin/env bash
# HTTP clients in Java and Rust whose timeouts are durations, and a server that never answers. After
# 300 ms, all of them end. Of half a millisecond most make whole milliseconds, so 0, which is no
# limit: OkHttp, Apache's HttpClient, Jetty, Feign, Jersey, two of the four of Spring, curl and
# isahc wait on. That of Java, those of Spring on it and on Jetty, ureq and attohttpc end.
# Guessed before the run: all end, after half a millisecond or a whole one.
. "$(dirname "$0")/lib.sh"
cat >"$work/server.py" <<'PYTHON'
import socket
import time

server = socket.create_server(("127.0.0.1", 0), backlog=100)
print(server.getsockname()[1], flush=True)
time.sleep(600)
PYTHON
python3 "$work/server.py" >"$work/port" &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
until [ -s "$work/port" ]; do sleep 0.05; done
URL=http://127.0.0.1:$(cat "$work/port")/
export URL
java com.squareup.okhttp3:okhttp-jvm:5.5.1 org.apache.httpcomponents.client5:httpclient5:5.6.5 \
  org.eclipse.jetty:jetty-client:12.1.14 org.springframework:spring-web:6.2.19 \
  io.github.openfeign:feign-core:13.5 org.glassfish.jersey.core:jersey-client:3.1.12 \
  org.glassfish.jersey.inject:jersey-hk2:3.1.12 org.slf4j:slf4j-nop:2.0.17 <<'JAVA'
import feign.Client;
import feign.Request;
import jakarta.ws.rs.client.ClientBuilder;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import okhttp3.OkHttpClient;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.util.Timeout;
import org.eclipse.jetty.client.HttpClient;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.JettyClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;

class Main {
    interface Get {
        void get(URI url, Duration limit) throws Exception;
    }

    static okhttp3.Request request(URI url) {
        return new okhttp3.Request.Builder().url(url.toString()).build();
    }

    static void spring(ClientHttpRequestFactory factory, URI url) throws Exception {
        factory.createRequest(url, HttpMethod.GET).execute().getStatusCode();
    }

    public static void main(String[] none) throws Exception {
        Map<String, Get> clients = new LinkedHashMap<>();
        clients.put("java.net.http", (url, limit) ->
                java.net.http.HttpClient.newHttpClient().send(
                        HttpRequest.newBuilder(url).timeout(limit).build(),
                        BodyHandlers.ofString()));
        clients.put("OkHttp, call", (url, limit) ->
                new OkHttpClient.Builder().callTimeout(limit).build()
                        .newCall(request(url)).execute());
        clients.put("OkHttp, read", (url, limit) ->
                new OkHttpClient.Builder().readTimeout(limit).build()
                        .newCall(request(url)).execute());
        clients.put("Apache", (url, limit) -> {
            var config = RequestConfig.custom().setResponseTimeout(Timeout.of(limit)).build();
            HttpClients.custom().disableAutomaticRetries().setDefaultRequestConfig(config).build()
                    .execute(new HttpGet(url), answer -> null);
        });
        clients.put("Jetty", (url, limit) -> {
            var client = new HttpClient();
            client.start();
            client.newRequest(url).timeout(limit.toNanos(), TimeUnit.NANOSECONDS).send();
        });
        clients.put("Feign", (url, limit) -> {
            var options = new Request.Options(9, TimeUnit.SECONDS, limit.toNanos(),
                    TimeUnit.NANOSECONDS, true);
            var request = Request.create(Request.HttpMethod.GET, url.toString(), Map.of(),
                    Request.Body.empty(), null);
            new Client.Default(null, null).execute(request, options);
        });
        clients.put("Jersey", (url, limit) ->
                ClientBuilder.newBuilder()
                        .readTimeout(limit.toNanos(), TimeUnit.NANOSECONDS).build()
                        .target(url).request().get());
        clients.put("Spring, simple", (url, limit) -> {
            var factory = new SimpleClientHttpRequestFactory();
            factory.setReadTimeout(limit);
            spring(factory, url);
        });
        clients.put("Spring, Apache", (url, limit) -> {
            var factory = new HttpComponentsClientHttpRequestFactory();
            factory.setReadTimeout(limit);
            spring(factory, url);
        });
        clients.put("Spring, Jetty", (url, limit) -> {
            var factory = new JettyClientHttpRequestFactory();
            factory.setReadTimeout(limit);
            spring(factory, url);
        });
        clients.put("Spring, Java", (url, limit) -> {
            var factory = new JdkClientHttpRequestFactory();
            factory.setReadTimeout(limit);
            spring(factory, url);
        });
        URI url = URI.create(System.getenv("URL"));
        for (var client : clients.entrySet()) {
            System.out.print(client.getKey() + ":");
            for (long microseconds : new long[] {300_000, 500}) {
                var done = new CompletableFuture<Void>();
                var thread = new Thread(() -> {
                    try {
                        client.getValue().get(url, Duration.ofNanos(microseconds * 1000));
                        done.complete(null);
                    } catch (Throwable e) {
                        done.completeExceptionally(e);
                    }
                });
                thread.setDaemon(true);
                thread.start();
                try {
                    done.get(3, TimeUnit.SECONDS);
                    System.out.print(" an answer");
                } catch (ExecutionException e) {
                    System.out.print(" ends");
                } catch (TimeoutException e) {
                    System.out.print(" waits on");
                }
            }
            System.out.println();
        }
        System.exit(0);
    }
}
JAVA
mv "$work/seen" "$work/all"
rust 'curl = { version = "=0.4.51", default-features = false }' \
  'isahc = { version = "=1.8.3", default-features = false }' \
  'ureq = { version = "=3.5.2", default-features = false }' \
  'attohttpc = { version = "=0.28.5", default-features = false }' <<'RUST'
use isahc::config::Configurable;
use std::sync::mpsc;
use std::time::Duration;

fn with_curl(url: &str, limit: Duration) -> bool {
    let mut client = curl::easy::Easy::new();
    client.url(url).unwrap();
    client.timeout(limit).unwrap();
    client.perform().is_ok()
}

fn with_isahc(url: &str, limit: Duration) -> bool {
    isahc::send(isahc::Request::get(url).timeout(limit).body(()).unwrap()).is_ok()
}

fn with_ureq(url: &str, limit: Duration) -> bool {
    let config = ureq::Agent::config_builder().timeout_global(Some(limit)).build();
    ureq::Agent::from(config).get(url).call().is_ok()
}

fn with_attohttpc(url: &str, limit: Duration) -> bool {
    attohttpc::get(url).timeout(limit).send().is_ok()
}

fn main() {
    let clients: [(&str, fn(&str, Duration) -> bool); 4] = [
        ("curl", with_curl),
        ("isahc", with_isahc),
        ("ureq", with_ureq),
        ("attohttpc", with_attohttpc),
    ];
    for (name, get) in clients {
        print!("{name}:");
        for limit in [Duration::from_millis(300), Duration::from_micros(500)] {
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || sender.send(get(&std::env::var("URL").unwrap(), limit)));
            print!("{}", match receiver.recv_timeout(Duration::from_secs(3)) {
                Ok(true) => " an answer",
                Ok(false) => " ends",
                Err(_) => " waits on",
            });
        }
        println!();
    }
}
RUST
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
java.net.http: ends ends
OkHttp, call: ends waits on
OkHttp, read: ends waits on
Apache: ends waits on
Jetty: ends waits on
Feign: ends waits on
Jersey: ends waits on
Spring, simple: ends waits on
Spring, Apache: ends waits on
Spring, Jetty: ends ends
Spring, Java: ends ends
curl: ends waits on
isahc: ends waits on
ureq: ends ends
attohttpc: ends ends
SEEN
