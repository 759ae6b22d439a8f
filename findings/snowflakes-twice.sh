#!/usr/bin/env bash
# Ids that consist of the time, the worker and a counter. After six ids of one millisecond and three
# each of two later ones, the wall clock is set back by 1 ms, as a time server may, and these two
# come again. Five of thirteen packages return the same six ids again. Three refuse until the clock
# is where it was, and five go on with other ids.
# Guessed before the run: none returns an id twice; most refuse, or wait.
. "$(dirname "$0")/lib.sh"
node flake-idgen@1.4.0 snowflake-id@1.1.0 flakeid@1.0.1 @sapphire/snowflake@3.5.5 \
  @akashrajpurohit/snowflake-id@2.0.0 @skorotkiewicz/snowflake-id@1.0.1 simple-flakeid@0.0.5 \
  @nocobase/snowflake-id@2.2.15 snowflake-uuid@1.0.0 nodejs-snowflake@2.0.1 snowyflake@2.0.1 \
  @theinternetfolks/snowflake@1.3.0 snowflake-generator@1.0.2 <<'JS'
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const START = Date.UTC(2027, 0, 15);
let clock = START - 1000;
globalThis.Date = class extends Date {
  constructor(...time) {
    super(...(time.length ? time : [clock]));
  }
  static now() {
    return clock;
  }
};
const generators = {
  "flake-idgen": (Flake) => {
    const flake = new Flake();
    return () => flake.next().toString("hex");
  },
  "snowflake-id": ({ default: Snowflake }) => {
    const flake = new Snowflake({ mid: 1 });
    return () => flake.generate();
  },
  flakeid: (Flake) => {
    const flake = new Flake({ mid: 1 });
    return () => flake.gen();
  },
  "@sapphire/snowflake": ({ Snowflake }) => {
    const flake = new Snowflake(0);
    return () => flake.generate();
  },
  "@akashrajpurohit/snowflake-id": ({ SnowflakeId }) => SnowflakeId({ workerId: 1 }).generate,
  "@skorotkiewicz/snowflake-id": ({ Snowflake }) => {
    const flake = new Snowflake(1);
    return () => flake.generate();
  },
  "simple-flakeid": ({ SnowflakeIdv1 }) => {
    const flake = new SnowflakeIdv1({ workerId: 1 });
    return () => flake.NextId();
  },
  "@nocobase/snowflake-id": ({ Snowflake }) => {
    const flake = new Snowflake({ workerId: 1 });
    return () => flake.generate();
  },
  "snowflake-uuid": ({ Worker }) => {
    const flake = new Worker(0, 1);
    return () => flake.nextId();
  },
  "nodejs-snowflake": ({ Snowflake }) => {
    const flake = new Snowflake({ instance_id: 1 });
    return () => flake.getUniqueID();
  },
  snowyflake: ({ Snowyflake }) => {
    const flake = new Snowyflake({ workerId: 1n });
    return () => flake.nextId();
  },
  "@theinternetfolks/snowflake": ({ Snowflake }) => () => Snowflake.generate(),
  "snowflake-generator": ({ Generator }) => {
    const flake = new Generator(0);
    return () => flake.generate();
  },
};
for (const [name, make] of Object.entries(generators)) {
  clock = START - 1000;
  const next = make(require(name));
  const ids = [];
  let errors = 0;
  const three = async (time) => {
    clock = time;
    for (let count = 0; count < 3; count += 1) {
      try {
        ids.push(String(await next()));
      } catch {
        errors += 1;
      }
    }
  };
  await three(START);
  await three(START);
  console.assert(new Set(ids).size === 6, name);
  await three(START + 10);
  await three(START + 11);
  const before = new Set(ids).size;
  await three(START + 10);
  await three(START + 11);
  const twice = ids.length - new Set(ids).size;
  console.log(`${name}|${before} ids, then ${twice} of them again, ${errors} errors`);
}
JS
awk -F'|' '{ who[$2] = who[$2] ", " $1 }
  END { for (kind in who) print kind ":" substr(who[kind], 2) }' "$work/seen" |
  LC_ALL=C sort | fold -sw 96 | sed 's/ $//' >"$work/kinds"
mv "$work/kinds" "$work/seen"
seen <<'SEEN'
12 ids, then 0 of them again, 0 errors: @sapphire/snowflake, simple-flakeid,
@nocobase/snowflake-id, @theinternetfolks/snowflake, snowflake-generator
12 ids, then 0 of them again, 3 errors: flake-idgen, @akashrajpurohit/snowflake-id,
snowflake-uuid
12 ids, then 6 of them again, 0 errors: snowflake-id, flakeid, @skorotkiewicz/snowflake-id,
nodejs-snowflake, snowyflake
SEEN
