// Counts how often each thread of the machine is woken, for `tickless warp`: a thread that was
// asleep, and has not been woken since, is asleep.
//
// The tracepoint is reached before the thread becomes runnable, with interrupts off. Needs no
// headers, as `top.bpf.c` of tickless-top.
//
// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;

struct task_struct { int pid; } __attribute__((preserve_access_index));

// The same number is in `src/sys/wakes.rs`.
#define SLOTS 65536

struct counts { u32 of[SLOTS]; };

// An array that can be mapped (BPF_F_MMAPABLE), with one entry.
struct {
	int(*type)[2];
	int(*map_flags)[1024];
	u32(*key);
	struct counts(*value);
	int(*max_entries)[1];
} wakes SEC(".maps");

SEC("tp_btf/sched_waking")
int sched_waking(u64 *arguments)
{
	struct task_struct *woken = (void *)arguments[0];
	u32 zero = 0;
	struct counts *counts = map_lookup(&wakes, &zero);
	if (counts)
		__sync_fetch_and_add(&counts->of[woken->pid & (SLOTS - 1)], 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
