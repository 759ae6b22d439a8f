// Counts for `tickless warp` how often each thread of the machine is woken, and stores when the
// kernel will wake each thread that sleeps with a timeout.
//
// A thread that was asleep, and has not been woken since, is asleep. A thread that sleeps with a
// timeout starts an hrtimer of its own, which has the thread behind it (`struct hrtimer_sleeper`).
//
// Needs no headers, as `top.bpf.c` of tickless-top, and not the kernel's description of its types
// either, which takes 80 ms to read. `src/sys/thread_events.rs` finds the place of a thread's
// number; those of the timer's fields have been these since Linux 4.16, which it checks.
//
// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const current_thread)(void) = (void *)14;
static u64 (*const current_task)(void) = (void *)35;
static long (*const read_kernel)(void *to, u32 size, u64 from) = (void *)113;

// `src/sys/thread_events.rs` has the same numbers and structures.
#define SLOTS 65536
#define SETS 16384
#define WAYS 4
#define TASK_SIZE 8192

// The last sleep with a timeout of a thread: its number, its task_struct, and the end of the sleep.
struct sleep { u64 thread, task, expiry; };

struct events {
	// Of threads whose numbers are equal modulo SETS, this many.
	struct sleep sleeps[SETS][WAYS];
	u32 wakes[SLOTS];
	u64 tracer; // The number of the tracer's thread.
	u64 target; // The task_struct of a thread that the tracer may wake now,
	u64 target_wakes; // and how often it has woken such a thread.
	u64 thread_at; // The place of a thread's number in its task_struct, once it is known.
	char task[TASK_SIZE]; // Until then, the tracer's own task_struct.
};

// An array that can be mapped, with one entry; `src/sys/bpf.rs` makes it.
struct {
	int(*type)[2];
	u32(*key);
	struct events(*value);
	int(*max_entries)[1];
} map SEC(".maps");

static struct events *get(void)
{
	u32 zero = 0;
	return map_lookup(&map, &zero);
}

#define SOFT_EXPIRY 32
#define SLEEPER 64

SEC("raw_tp/hrtimer_start")
int hrtimer_start(u64 *arguments)
{
	u64 timer = arguments[0], task = 0, expiry = 0;
	if (read_kernel(&task, sizeof task, timer + SLEEPER) || task != current_task())
		return 0;
	read_kernel(&expiry, sizeof expiry, timer + SOFT_EXPIRY);
	struct events *events = get();
	if (!events)
		return 0;
	u32 thread = current_thread();
	if (!events->thread_at && thread == events->tracer)
		read_kernel(events->task, TASK_SIZE, task);
	// The thread's own place, or else that of the sleep which ends first: it is perhaps over.
	struct sleep *set = events->sleeps[thread & (SETS - 1)], *sleep = set;
#pragma unroll
	for (int way = 0; way < WAYS; way++) {
		if (set[way].thread == thread) {
			sleep = &set[way];
			break;
		}
		if (set[way].expiry < sleep->expiry)
			sleep = &set[way];
	}
	sleep->thread = thread;
	sleep->task = task;
	sleep->expiry = expiry;
	return 0;
}

// Reached before the thread becomes runnable, and only if it was asleep, or about to be.
SEC("raw_tp/sched_waking")
int sched_waking(u64 *arguments)
{
	u64 task = arguments[0];
	struct events *events = get();
	u32 thread = 0;
	if (!events || !events->thread_at)
		return 0;
	if (!read_kernel(&thread, sizeof thread, task + events->thread_at))
		__sync_fetch_and_add(&events->wakes[thread & (SLOTS - 1)], 1);
	if (task == events->target && (u32)current_thread() == events->tracer)
		events->target_wakes++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
