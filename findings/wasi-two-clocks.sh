#!/usr/bin/env bash
# A call of WASI's `poll_oneoff` with two clocks. Of 80 and 20 ms, wasmtime 50.0.1, Node's own
# host (20.20) and @tybys/wasm-util 0.10.5 return the second after 20 ms; wazero 1.12.0 returns
# both then, the first 60 ms early; @runno/wasi 0.10.0 returns both without a wait. Where both are
# of 20 ms, Node's host and @tybys/wasm-util return only the first.
# Guessed before the run: one event, of the second; both events where they are equal.
. "$(dirname "$0")/lib.sh"
export MODULE=$work/clocks.wasm
cat >"$work/clocks.wat" <<'WAT'
(module
  (import "wasi_snapshot_preview1" "poll_oneoff"
    (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize"))
  ;; Subscribes to the monotonic clock, in so many milliseconds, with the number as user data.
  (func $subscribe (param $number i32) (param $milliseconds i64)
    (local $at i32)
    (local.set $at (i32.add (i32.const 1000) (i32.mul (local.get $number) (i32.const 48))))
    (i64.store (local.get $at) (i64.extend_i32_u (local.get $number)))
    (i32.store offset=16 (local.get $at) (i32.const 1))
    (i64.store offset=24 (local.get $at)
      (i64.mul (local.get $milliseconds) (i64.const 1000000))))
  ;; The number of events, or a negative error.
  (func (export "poll") (param $first i64) (param $second i64) (result i32)
    (local $error i32)
    (call $subscribe (i32.const 0) (local.get $first))
    (call $subscribe (i32.const 1) (local.get $second))
    (local.set $error (call $poll (i32.const 1000) (i32.const 2000) (i32.const 2) (i32.const 3000)))
    (if (local.get $error) (then (return (i32.sub (i32.const 0) (local.get $error)))))
    (i32.load (i32.const 3000)))
  ;; The user data of an event.
  (func (export "clock") (param $event i32) (result i32)
    (i32.load offset=2000 (i32.mul (local.get $event) (i32.const 32)))))
WAT
python wasmtime==50.0.1 <<PYTHON
import os
import pathlib
import time

import wasmtime

binary = wasmtime.wat2wasm(pathlib.Path("$work/clocks.wat").read_text())
pathlib.Path(os.environ["MODULE"]).write_bytes(binary)
store = wasmtime.Store()
linker = wasmtime.Linker(store.engine)
linker.define_wasi()
store.set_wasi(wasmtime.WasiConfig())
exports = linker.instantiate(store, wasmtime.Module(store.engine, binary)).exports(store)
for first, second in (80, 20), (20, 20):
    begun = time.monotonic()
    count = exports["poll"](store, first, second)
    waited = "waits" if time.monotonic() - begun > 0.015 else "no wait"
    events = [first if exports["clock"](store, event) == 0 else second for event in range(count)]
    print(f"wasmtime: {first} and {second} ms: {waited}, events of", *events)
PYTHON
cat "$work/seen" >"$work/all"
NODE_OPTIONS=--no-warnings node @tybys/wasm-util@0.10.5 @runno/wasi@0.10.0 <<'JS'
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";
import { WASI as Tybys } from "@tybys/wasm-util";
import { WASI as Runno } from "@runno/wasi";

const module = await WebAssembly.compile(readFileSync(process.env.MODULE));
const hosts = {
  "Node's": new WASI({ version: "preview1" }),
  "@tybys/wasm-util": new Tybys({ version: "preview1" }),
  "@runno/wasi": new Runno({}),
};
for (const [name, host] of Object.entries(hosts)) {
  const imports = host.getImportObject?.() ?? { wasi_snapshot_preview1: host.wasiImport };
  const instance = await WebAssembly.instantiate(module, imports);
  host.initialize(name === "@runno/wasi" ? { instance, module } : instance);
  const { poll, clock } = instance.exports;
  for (const clocks of [[80, 20], [20, 20]]) {
    const begun = performance.now();
    const count = poll(...clocks.map(BigInt));
    const waited = performance.now() - begun > 15 ? "waits" : "no wait";
    const events = Array.from({ length: count }, (_, event) => clocks[clock(event)]);
    console.log(`${name}: ${clocks.join(" and ")} ms: ${waited}, events of`, ...events);
  }
}
JS
cat "$work/seen" >>"$work/all"
golang github.com/tetratelabs/wazero@v1.12.0 \
  github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1@v1.12.0 <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func main() {
	background := context.Background()
	runtime := wazero.NewRuntime(background)
	wasi_snapshot_preview1.MustInstantiate(background, runtime)
	binary, _ := os.ReadFile(os.Getenv("MODULE"))
	config := wazero.NewModuleConfig().WithSysNanosleep().WithSysNanotime()
	module, _ := runtime.InstantiateWithConfig(background, binary, config)
	call := func(name string, values ...uint64) uint64 {
		results, _ := module.ExportedFunction(name).Call(background, values...)
		return results[0]
	}
	for _, clocks := range [][]uint64{{80, 20}, {20, 20}} {
		begun := time.Now()
		count := call("poll", clocks...)
		waited := "no wait"
		if time.Since(begun) > 15*time.Millisecond {
			waited = "waits"
		}
		fmt.Printf("wazero: %d and %d ms: %s, events of", clocks[0], clocks[1], waited)
		for event := uint64(0); event < count; event++ {
			fmt.Print(" ", clocks[call("clock", event)])
		}
		fmt.Println()
	}
}
GO
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
wasmtime: 80 and 20 ms: waits, events of 20
wasmtime: 20 and 20 ms: waits, events of 20 20
Node's: 80 and 20 ms: waits, events of 20
Node's: 20 and 20 ms: waits, events of 20
@tybys/wasm-util: 80 and 20 ms: waits, events of 20
@tybys/wasm-util: 20 and 20 ms: waits, events of 20
@runno/wasi: 80 and 20 ms: no wait, events of 80 20
@runno/wasi: 20 and 20 ms: no wait, events of 20 20
wazero: 80 and 20 ms: waits, events of 80 20
wazero: 20 and 20 ms: waits, events of 20 20
SEEN
