// Go's runtime timers, measured by a program that asks for one sample after the other:
// timers/bench/src/peers/foreign.rs; foreign/cpp/bench.hpp says what the cases are.
package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const second = 1_000_000_000

// The generator of all peers.
type random uint64

func newRandom() *random {
	state := random(0x2545_f491_4f6c_dd1d)
	return &state
}

func (r *random) below(bound uint64) uint64 {
	*r ^= *r << 13
	*r ^= *r >> 7
	*r ^= *r << 17
	high, _ := bits.Mul64(uint64(*r), bound)
	return high
}

func (r *random) seconds(from, to uint64) uint64 {
	return from*second + r.below((to-from)*second)
}

func (r *random) many(count int, from, to uint64) []uint64 {
	all := make([]uint64, count)
	for i := range all {
		all[i] = r.seconds(from, to)
	}
	return all
}

// CPU time of the thread or of the process, ns.
func cpuTime(clock uintptr) uint64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Sec)*second + uint64(now.Nsec)
}

func threadTime() uint64  { return cpuTime(3) }
func processTime() uint64 { return cpuTime(2) }

var fired atomic.Uint64

func fire() { fired.Add(1) }

func start(after uint64) *time.Timer {
	return time.AfterFunc(time.Duration(after), fire)
}

// Reset and Stop return whether the timer was pending. Go does not tell otherwise.
func stop(timer *time.Timer) {
	if !timer.Stop() {
		panic("a timer was gone")
	}
}

// ns per operation, how many are pending or have fired, the sum of all deadlines.
type sample func() (float64, uint64, uint64)

func pairs(pending, operations int) sample {
	r := newRandom()
	others := r.many(pending, 600, 1200)
	pairs := r.many(operations, 600, 1200)
	timers := make([]*time.Timer, pending)
	for i, after := range others {
		timers[i] = start(after)
	}
	return func() (float64, uint64, uint64) {
		sum := uint64(0)
		began := threadTime()
		for _, after := range pairs {
			stop(start(after))
			sum += after
		}
		took := threadTime() - began
		return float64(took) / float64(operations), uint64(len(timers)) - fired.Load(), sum
	}
}

func pushes(pending, operations int, equal bool) sample {
	r := newRandom()
	deadlines := r.many(pending, 600, 1200)
	timers := make([]*time.Timer, pending)
	for i, after := range deadlines {
		timers[i] = start(after)
	}
	last := uint64(1200 * second)
	which := make([]uint32, 2*operations)
	to := make([]uint64, 2*operations)
	return func() (float64, uint64, uint64) {
		sum := uint64(0)
		for i := range which {
			timer := uint32(r.below(uint64(pending)))
			last += 100_000
			if equal {
				deadlines[timer] = last
			} else {
				deadlines[timer] += r.seconds(0, 100)
			}
			which[i], to[i] = timer, deadlines[timer]
			sum += to[i]
		}
		run := func(from, until int) {
			for i := from; i < until; i++ {
				if !timers[which[i]].Reset(time.Duration(to[i])) {
					panic("a timer was gone")
				}
			}
		}
		run(0, operations)
		began := threadTime()
		run(operations, 2*operations)
		took := threadTime() - began
		return float64(took) / float64(operations), uint64(len(timers)) - fired.Load(), sum
	}
}

func expiry(count int) sample {
	r := newRandom()
	after := make([]uint64, count)
	sum := uint64(0)
	for i := range after {
		after[i] = r.below(second)
		sum += after[i]
	}
	return func() (float64, uint64, uint64) {
		fired.Store(0)
		// Far enough for all to be armed before the first is due.
		base := time.Now().Add(2 * time.Millisecond * time.Duration(1+count/1000))
		timers := make([]*time.Timer, count)
		for i, after := range after {
			timers[i] = time.AfterFunc(time.Until(base)+time.Duration(after), fire)
		}
		runtime.GC()
		began := processTime()
		for waited := 0; fired.Load() < uint64(count) && waited < 1500; waited++ {
			time.Sleep(20 * time.Millisecond)
		}
		took := processTime() - began
		runtime.KeepAlive(timers)
		return float64(took) / float64(count), fired.Load(), sum
	}
}

// Wall time from when the first began to when the last ended, each on a thread of its own.
func both(one, other func()) time.Duration {
	var waiting atomic.Int32
	waiting.Store(2)
	type span struct{ began, ended time.Time }
	spans := make(chan span)
	for _, work := range []func(){one, other} {
		go func(work func()) {
			runtime.LockOSThread()
			waiting.Add(-1)
			for waiting.Load() > 0 {
				runtime.Gosched()
			}
			began := time.Now()
			work()
			spans <- span{began, time.Now()}
		}(work)
	}
	a, b := <-spans, <-spans
	if b.began.Before(a.began) {
		a.began = b.began
	}
	if b.ended.After(a.ended) {
		a.ended = b.ended
	}
	return a.ended.Sub(a.began)
}

func own(operations int) sample {
	after := newRandom().many(operations, 600, 1200)
	work := func() {
		for _, after := range after {
			stop(start(after))
		}
	}
	return func() (float64, uint64, uint64) {
		return float64(both(work, work)) / float64(2*operations), 0, 0
	}
}

// One producer, one consumer.
type ring struct {
	places  [1024]atomic.Pointer[time.Timer]
	in, out int
}

func (r *ring) push(timer *time.Timer) {
	place := &r.places[r.in%len(r.places)]
	r.in++
	for place.Load() != nil {
		runtime.Gosched()
	}
	place.Store(timer)
}

func (r *ring) pop() *time.Timer {
	place := &r.places[r.out%len(r.places)]
	r.out++
	for {
		if timer := place.Load(); timer != nil {
			place.Store(nil)
			return timer
		}
		runtime.Gosched()
	}
}

func crossed(operations int) sample {
	after := newRandom().many(operations, 600, 1200)
	return func() (float64, uint64, uint64) {
		var armed ring
		arm := func() {
			for _, after := range after {
				armed.push(start(after))
			}
		}
		cancel := func() {
			for range after {
				stop(armed.pop())
			}
		}
		return float64(both(arm, cancel)) / float64(operations), 0, 0
	}
}

func main() {
	kind := os.Args[1]
	pending, _ := strconv.Atoi(os.Args[2])
	operations, _ := strconv.Atoi(os.Args[3])
	var take sample
	switch kind {
	case "own":
		take = own(operations)
	case "crossed":
		take = crossed(operations)
	case "expire":
		take = expiry(pending)
	case "pairs":
		runtime.LockOSThread()
		take = pairs(pending, operations)
	default:
		runtime.LockOSThread()
		take = pushes(pending, operations, kind == "push_equal")
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ns, count, sum := take()
		fmt.Printf("%f %d %d\n", ns, count, sum)
	}
}
