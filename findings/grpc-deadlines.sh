#!/usr/bin/env bash
# The deadlines that clients of gRPC send, in the header `grpc-timeout`. The core in C (grpcio
# 1.76.0 for Python, and the other languages that are built on it) keeps three digits and rounds up:
# a call with a limit of 10,030 s gives its server 10,100. A server that passes on what it has left
# gives the next one more than it was given. A limit of 100 years is sent as 27,000 hours, three
# years. grpc-go 1.76.0, grpc-java 1.76.0, @grpc/grpc-js 1.14.1 and tonic 0.14.2 send what they were
# asked for.
# Guessed before the run: all send the limit to the millisecond or better, as eight digits may be
# sent.
. "$(dirname "$0")/lib.sh"
# A server that prints the header and refuses the call.
cat >"$work/server.mjs" <<'JS'
import { createServer } from "node:http2";

const units = { H: 3600, M: 60, S: 1, m: 1e-3, u: 1e-6, n: 1e-9 };
const server = createServer();
server.on("stream", (stream, headers) => {
  const header = headers["grpc-timeout"];
  const seconds = Number(header.slice(0, -1)) * units[header.slice(-1)];
  console.log(seconds);
  stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" },
    { endStream: true });
});
server.listen(0, "127.0.0.1", () => console.error(server.address().port));
setTimeout(() => process.exit(), 600e3);
JS
command node "$work/server.mjs" >>"$work/headers" 2>"$work/port" &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
until [ -s "$work/port" ]; do sleep 0.05; done
PORT=$(cat "$work/port")
export PORT
# sent NAME: appends which share of its limits the server was told since the last call.
sent() {
  awk -v name="$1" '{ share = share sprintf(" %.1f %%", 100 * $1 / (NR == 1 ? 10030 : 3153600000)) }
    END { print name ":" share }' "$work/headers" "$work/seen" >>"$work/all"
  : >"$work/headers"
}
python grpcio==1.76.0 <<'PYTHON'
import os

import grpc

call = grpc.insecure_channel("127.0.0.1:" + os.environ["PORT"]).unary_unary("/a/b")
for seconds in (10030, 36500 * 86400):
    try:
        call(b"", timeout=seconds)
    except grpc.RpcError:
        pass
PYTHON
sent grpcio
node @grpc/grpc-js@1.14.1 <<'JS'
import { Client, credentials } from "@grpc/grpc-js";

const client = new Client("127.0.0.1:" + process.env.PORT, credentials.createInsecure());
const bytes = () => Buffer.alloc(0);
for (const seconds of [10030, 36500 * 86400]) {
  const deadline = Date.now() + seconds * 1000;
  await new Promise((done) =>
    client.makeUnaryRequest("/a/b", bytes, bytes, null, { deadline }, done));
}
process.exit();
JS
sent grpc-js
golang google.golang.org/grpc@v1.76.0 google.golang.org/protobuf@v1.36.10 <<'GO'
package main

import (
	"context"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

func main() {
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	client, _ := grpc.NewClient("127.0.0.1:"+os.Getenv("PORT"), plain)
	hundredYears := 36500 * 24 * time.Hour
	for _, limit := range []time.Duration{10030 * time.Second, hundredYears} {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		client.Invoke(ctx, "/a/b", &emptypb.Empty{}, &emptypb.Empty{})
		cancel()
	}
}
GO
sent grpc-go
java io.grpc:grpc-netty-shaded:1.76.0 io.grpc:grpc-stub:1.76.0 <<'JAVA'
import io.grpc.*;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.*;
import java.util.concurrent.TimeUnit;

public class Main {
    static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
        public InputStream stream(byte[] value) { return new ByteArrayInputStream(value); }
        public byte[] parse(InputStream stream) { return new byte[0]; }
    };

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(System.getenv("PORT"));
        var channel = NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext().build();
        var method = MethodDescriptor.newBuilder(BYTES, BYTES).setFullMethodName("a/b")
            .setType(MethodDescriptor.MethodType.UNARY).build();
        // The first deadline would begin before the connection is made.
        while (channel.getState(true) != ConnectivityState.READY) Thread.sleep(10);
        for (long seconds : new long[] {10_030, 36_500 * 86_400L}) {
            var options = CallOptions.DEFAULT.withDeadlineAfter(seconds, TimeUnit.SECONDS);
            try {
                ClientCalls.blockingUnaryCall(channel, method, options, new byte[0]);
            } catch (StatusRuntimeException refused) {
            }
        }
        System.exit(0);
    }
}
JAVA
sent grpc-java
rust 'tonic = { version = "=0.14.2", default-features = false }' <<'RUST'
use std::time::Duration;

fn main() {
    for limit in [10030, 36500 * 86400] {
        let mut request = tonic::Request::new(());
        request.set_timeout(Duration::from_secs(limit));
        let header = request.metadata().get("grpc-timeout").unwrap().to_str().unwrap();
        let (digits, unit) = header.split_at(header.len() - 1);
        let units = [("H", 3600.0), ("M", 60.0), ("S", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9)];
        let seconds = units.iter().find(|(name, _)| *name == unit).unwrap().1;
        println!("{}", digits.parse::<f64>().unwrap() * seconds);
    }
}
RUST
sent tonic
mv "$work/all" "$work/seen"
seen <<'SEEN'
grpcio: 100.7 % 3.1 %
grpc-js: 100.0 % 100.0 %
grpc-go: 100.0 % 100.0 %
grpc-java: 100.0 % 100.0 %
tonic: 100.0 % 100.0 %
SEEN
