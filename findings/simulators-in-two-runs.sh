#!/usr/bin/env bash
# A process that acts every 2 s, in six simulators that run until 9 s, then until 10 s, then until
# 20 s. Three leave out what is due at the end of a run, three do it. After the first run, two
# clocks still read 8 s. SimJS takes the event after the end out of its queue to look at it, and
# loses it: the process never acts again.
# Guessed before the run: each has ten actions by 20 s, but for SimPy, and each clock reads 9 s.
. "$(dirname "$0")/lib.sh"
python simpy==4.1.2 salabim==26.0.9 simulus==1.2.1 asimpy==0.20.0 <<'PYTHON'
import asimpy
import salabim
import simpy
import simulus


def show(name, acted, run, now):
    run(9)
    clock = now()
    run(10)
    first = len(acted)
    run(20)
    print(f"{name}: at 9 s the clock reads {clock:g}; {first} by 10 s, {len(acted)} by 20 s")


acted, env = [], simpy.Environment()


def process():
    while True:
        yield env.timeout(2)
        acted.append(env.now)


env.process(process())
show("SimPy", acted, lambda end: env.run(until=end), lambda: env.now)

salabim.yieldless(True)
world, salabim_acted = salabim.Environment(trace=False), []


class Process(salabim.Component):
    def process(self):
        while True:
            self.hold(2)
            salabim_acted.append(world.now())


Process()
show("salabim", salabim_acted, lambda end: world.run(till=end), world.now)

simulator, simulus_acted = simulus.simulator(), []


def act():
    while True:
        simulator.sleep(2)
        simulus_acted.append(simulator.now)


simulator.process(act)
show("simulus", simulus_acted, lambda end: simulator.run(until=end), lambda: simulator.now)

environment, asimpy_acted = asimpy.Environment(), []


class Acting(asimpy.Process):
    async def run(self):
        while True:
            await self.timeout(2)
            asimpy_acted.append(self.now)


Acting(environment)
show("asimpy", asimpy_acted, lambda end: environment.run(until=end), lambda: environment.now)
PYTHON
mv "$work/seen" "$work/all"
node simjs@2.0.3 <<'JS'
// It has no exports.
globalThis.window = {};
await import("simjs");
const simjs = window.Sim;

const acted = [];
class Process extends simjs.Entity {
  start() { this.next(); }
  next() { this.setTimer(2).done(() => { acted.push(this.time()); this.next(); }); }
}
const sim = new simjs.Sim();
sim.addEntity(Process);
sim.simulate(9, 1000);
const clock = sim.time();
sim.simulate(10, 1000);
const first = acted.length;
sim.simulate(20, 1000);
console.log(`SimJS: at 9 s the clock reads ${clock}; ${first} by 10 s, ${acted.length} by 20 s`);
JS
cat "$work/seen" >>"$work/all"
debian libsystemc-dev=2.3.4-2 libsystemc=2.3.4-2
cat >"$work/src/main.cpp" <<'CPP'
#include <iostream>
#include <systemc>

using namespace sc_core;

static int acted;

SC_MODULE(Acting) {
    void act() {
        for (;;) {
            wait(2, SC_SEC);
            acted++;
        }
    }
    SC_CTOR(Acting) { SC_THREAD(act); }
};

int sc_main(int, char **) {
    Acting acting("acting");
    sc_start(9, SC_SEC);
    double clock = sc_time_stamp().to_seconds();
    sc_start(1, SC_SEC);
    int first = acted;
    sc_start(10, SC_SEC);
    std::cout << "SystemC: at 9 s the clock reads " << clock << "; " << first << " by 10 s, "
              << acted << " by 20 s\n";
    return 0;
}
CPP
c++ -o "$work/systemc" -I "$LD_LIBRARY_PATH/../../include" "$work/src/main.cpp" \
  -L "$LD_LIBRARY_PATH" -lsystemc
"$work/systemc" 2>/dev/null | tail -n 1 >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
SimPy: at 9 s the clock reads 9; 4 by 10 s, 9 by 20 s
salabim: at 9 s the clock reads 9; 5 by 10 s, 10 by 20 s
simulus: at 9 s the clock reads 9; 4 by 10 s, 9 by 20 s
asimpy: at 9 s the clock reads 8; 5 by 10 s, 10 by 20 s
SimJS: at 9 s the clock reads 8; 4 by 10 s, 4 by 20 s
SystemC: at 9 s the clock reads 9; 4 by 10 s, 9 by 20 s
SEEN
