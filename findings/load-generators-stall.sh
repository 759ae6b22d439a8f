#!/usr/bin/env bash
# Six load generators, each told to send 100 requests a second for 8 s, those that have
# connections by 10 of them, to a server that stands still for 3 s. Of 800 users, 300 come then
# and wait for 1.5 s on average, which makes a mean of 560 ms. Three say so or a little more. The
# others do not send while their connections wait, and leave those users out: 10 slow requests,
# and a mean of 40 to 60 ms.
# Guessed before the run: all of them say so, since all have a rate.
. "$(dirname "$0")/lib.sh"
debian httperf=0.9.0-9+b2 nghttp2-client=1.52.0-1+deb12u3 hey=0.1.4-2+b4 libjemalloc2 libev4 \
  libjansson4
(cd "$work/src" && npm install --silent --no-fund --no-audit loadtest@8.2.1 >/dev/null)
export GOBIN=$work/bin PATH=$work/bin:$PATH
go install github.com/tsenart/vegeta/v12@v12.13.0 2>/dev/null
go install github.com/codesenberg/bombardier@v1.2.6 2>/dev/null
cat >"$work/server.py" <<'PYTHON'
import asyncio
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server(asyncio.Protocol):
    first = True
    requests = 0

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        if Server.first:
            Server.first = False
            asyncio.get_running_loop().call_later(1, time.sleep, 3)
        *requests, self.rest = (self.rest + data).split(b"\r\n\r\n")
        Server.requests += len(requests)
        self.transport.write(ANSWER * len(requests))


async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
PYTHON
# show NAME COMMAND...: the mean that the command prints, of a new server.
show() {
  local name=$1 server port
  shift
  : >"$work/port"
  python3 "$work/server.py" >"$work/port" &
  server=$!
  until [ -s "$work/port" ]; do sleep 0.05; done
  port=$(cat "$work/port")
  echo "$name: $("$@" "http://127.0.0.1:$port/" "$port" 2>/dev/null)"
  kill "$server" && wait "$server" || true
}
vegeta() {
  echo "GET $1" | command vegeta attack -rate=100 -duration=8s |
    command vegeta report -type=json | jq .latencies.mean/1e6
}
bombardier() {
  command bombardier -r 100 -c 10 -d 8s -t 10s -o json -p r "$1" | jq .result.latency.mean/1e3
}
hey() { command hey -z 8s -c 10 -q 10 "$1" | awk '/Average/ { print $2 * 1000 }'; }
loadtest() {
  "$work/src/node_modules/.bin/loadtest" --rps 100 -c 10 -t 8 -k "$1" |
    awk '/Mean latency/ { print $3 }'
}
h2load() {
  command h2load --h1 -c 10 --rps=10 -D 8 "$1" | awk '/time for request/ { print $6 + 0 }'
}
httperf() {
  command httperf --server=127.0.0.1 --port="$2" --rate=100 --num-conns=800 --timeout=9 |
    awk '/Connection time.*avg/ { print $7 }'
}
for tool in vegeta bombardier hey loadtest h2load httperf; do
  show $tool $tool
done >"$work/means"
cat "$work/means"
awk '{ print $1, ($2 > 300 ? "over 300 ms" : "below 100 ms") }' "$work/means" >"$work/seen"
seen <<'SEEN'
vegeta: over 300 ms
bombardier: below 100 ms
hey: below 100 ms
loadtest: over 300 ms
h2load: below 100 ms
httperf: over 300 ms
SEEN
