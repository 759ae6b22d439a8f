// What `tickless top` counts in the kernel, beside each timer event. The same arithmetic is in
// `tests/all/agreement.rs`, over events that tracefs recorded; a test compares the two.
//
// Needs no headers: the few kernel types are declared with the members that are read, and the
// loader finds where they are in the running kernel by its BTF.
//
// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define relocated __attribute__((preserve_access_index))
#define inlined static inline __attribute__((always_inline))
#define same_as(type, kind) type(*kind)
#define number(kind, value) int(*kind)[value]

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const ktime_ns)(void) = (void *)5;
static u64 (*const current_pid_tgid)(void) = (void *)14;
static long (*const current_comm)(void *buffer, u32 size) = (void *)16;
static u64 (*const current_task)(void) = (void *)35;
static u64 (*const jiffies64)(void) = (void *)118;

struct timerqueue_node { s64 expires; } relocated;
struct hrtimer { struct timerqueue_node node; s64 _softexpires; void *function; } relocated;
struct timer_list { unsigned long expires; void *function; u32 flags; } relocated;
struct task_struct { s32 tgid; } relocated;

// Set before the program is loaded.
const volatile u64 tick_function = 0;
const volatile u64 tick_function_older = 0;
const volatile u64 deadline_function = 0;
const volatile u64 sleeper_function = 0;
const volatile u64 tick_ns = 4000000;
const volatile u64 realtime_offset_ns = 0;

#define ROWS 4096
#define SOURCES 8192
#define TIMERS 65536
#define DISTANCES 32

#define PROCESSES 16384

// How many rows and sources there are, and how many had no place. `failed`: events that were lost
// because the kernel refused to store what they are about. `timers`: how many were stored.
// `forgotten`: expiries and cancels of timers that have perhaps lost their place to others.
// `unseen_ns`: the time for which CPUs showed no events, although another thread ran than the last
// one that was switched to; `unseen_tgid` is the process of the thread that was switched to.
struct used {
	u64 rows, rows_refused, sources, sources_refused;
	u64 failed, timers, forgotten, unseen_ns, unseen_tgid;
};

struct process { u64 cpu_ns, switches; char comm[16]; };

struct row_key { u64 function; u32 tgid; u32 is_wheel; };

struct row {
	u64 function;
	u32 tgid;
	u32 is_wheel;
	u64 arms, cancels, halves, rearms, expiries, idle_wakeups, device_writes, unseen;
	u64 distance_count[DISTANCES];
	u64 distance_sum[DISTANCES];
	char comm[16];
};

struct source_key { u64 timer; u64 function; };

// Something that expires again and again: a timer, or a thread that sleeps.
struct source { u64 period, votes, hits, distances, last, row, pid, function; };

struct timer { u64 function, soft, pid; u32 row, source, is_pending, tgid; };

// `task` is the thread that runs, by the last event that tells, and `tgid` its process.
struct cpu { u64 cancelled, since, task; u32 row, in_hard, in_soft, wake, wake_row, tgid; };

#define MAP(name, kind, keys, values, entries) \
	struct { number(type, kind); same_as(keys, key); same_as(values, value); \
		 number(max_entries, entries); } name SEC(".maps")

MAP(row_places, 1, struct row_key, u32, ROWS);
MAP(rows, 2, u32, struct row, ROWS);
MAP(source_places, 1, struct source_key, u32, SOURCES);
MAP(sources, 2, u32, struct source, SOURCES);
MAP(timers, 9, u64, struct timer, TIMERS);
MAP(cpus, 6, u32, struct cpu, 1);
MAP(used, 2, u32, struct used, 1);
// Where there are more, those that ran least recently lose their places: most of them have ended.
MAP(processes, 9, u32, struct process, PROCESSES);

inlined struct cpu *this_cpu(void)
{
	u32 zero = 0;
	return map_lookup(&cpus, &zero);
}

inlined struct used *used_now(void)
{
	u32 zero = 0;
	return map_lookup(&used, &zero);
}

inlined struct row *row_at(u32 at)
{
	return map_lookup(&rows, &at);
}

#define add(place, amount) __sync_fetch_and_add(&(place), (amount))

// Where the counts of this process and callback are; ROWS if there is no place.
static __attribute__((noinline)) u32 row_of(u64 function, u32 tgid, u32 is_wheel)
{
	struct row_key key = { function, tgid, is_wheel };
	u32 *known = map_lookup(&row_places, &key);
	if (known)
		return *known;
	struct used *used = used_now();
	if (!used)
		return ROWS;
	u32 place = add(used->rows, 1);
	if (place >= ROWS) {
		add(used->rows, -1);
		add(used->rows_refused, 1);
		return ROWS;
	}
	struct row *row = row_at(place);
	if (!row)
		return ROWS;
	row->function = function;
	row->tgid = tgid;
	row->is_wheel = is_wheel;
	if (tgid)
		current_comm(row->comm, sizeof(row->comm));
	map_update(&row_places, &key, &place, 0);
	return place;
}

static __attribute__((noinline)) u32 source_of(u64 timer, u64 function, u32 row, u32 pid)
{
	struct source_key key = { timer, function };
	u32 *known = map_lookup(&source_places, &key);
	if (known)
		return *known;
	struct used *used = used_now();
	if (!used)
		return SOURCES;
	u32 place = add(used->sources, 1);
	if (place >= SOURCES) {
		add(used->sources, -1);
		add(used->sources_refused, 1);
		return SOURCES;
	}
	struct source *source = map_lookup(&sources, &place);
	if (!source)
		return SOURCES;
	source->row = row;
	source->pid = pid;
	source->function = function;
	map_update(&source_places, &key, &place, 0);
	return place;
}

inlined u32 log2_of(u64 value)
{
	u32 log = 0;
	if (value >> 32) { log += 32; value >>= 32; }
	if (value >> 16) { log += 16; value >>= 16; }
	if (value >> 8) { log += 8; value >>= 8; }
	if (value >> 4) { log += 4; value >>= 4; }
	if (value >> 2) { log += 2; value >>= 2; }
	return log + (value >> 1);
}

// Distances below a microsecond are in the first place, those above half an hour in the last.
inlined void measure(struct row *row, u64 distance)
{
	u32 log = log2_of(distance | 1);
	u32 place = log < 10 ? 0 : log - 10;
	if (place >= DISTANCES)
		place = DISTANCES - 1;
	add(row->distance_count[place], 1);
	add(row->distance_sum[place], distance);
}

// A majority vote over the distances between expiries; a 32nd more or less is the same.
inlined void expired(struct source *source, u64 deadline)
{
	u64 last = source->last;
	source->last = deadline;
	if (!last || deadline <= last)
		return;
	u64 apart = deadline - last;
	u64 period = source->period;
	u64 off = apart > period ? apart - period : period - apart;
	source->distances++;
	if (off <= (period >> 5)) {
		source->votes++;
		source->hits++;
	} else if (source->votes) {
		source->votes--;
	} else {
		source->period = apart;
		source->votes = 1;
		source->hits = 1;
		source->distances = 1;
	}
}

inlined void failed(void)
{
	struct used *used = used_now();
	if (used)
		add(used->failed, 1);
}

// A timer is armed. `distance` is how far ahead the timer is armed, in nanoseconds. `is_moved`: it
// was pending, and the kernel does not report its removal.
inlined void armed(u64 address, u64 function, u64 soft, u64 distance, u32 is_wheel, u32 is_moved)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 ids = current_pid_tgid();
	u32 pid = ids;
	u32 tgid = ids >> 32;
	u32 is_task = pid && !cpu->in_hard && !cpu->in_soft;
	struct timer *timer = map_lookup(&timers, &address);
	struct timer new = {};
	if (!timer) {
		new.row = ROWS;
		new.source = SOURCES;
		map_update(&timers, &address, &new, 0);
		timer = map_lookup(&timers, &address);
		if (!timer) {
			failed();
			return;
		}
		struct used *used = used_now();
		if (used)
			add(used->timers, 1);
	}
	// The kernel reports the end of each timer. So if it is pending here and was not in the kernel,
	// its end was not seen: it may have been an expiry or a cancel.
	if (timer->is_pending && !is_moved) {
		struct row *row = row_at(timer->row);
		if (row)
			add(row->unseen, 1);
	}
	// In an interrupt it is armed for whoever armed it last. The tick is always the kernel's, and
	// so is the timer of deadline tasks and servers: the scheduler arms it, whoever runs.
	if (function == tick_function || function == tick_function_older ||
	    function == deadline_function) {
		tgid = 0;
		pid = 0;
	} else if (!is_task) {
		tgid = timer->function == function ? timer->tgid : 0;
		pid = timer->function == function ? timer->pid : 0;
	}
	if (timer->row >= ROWS || timer->function != function || timer->tgid != tgid)
		timer->row = row_of(function, tgid, is_wheel);
	if (timer->source >= SOURCES || timer->function != function || timer->pid != pid) {
		// A thread's sleeps are one source, whatever stack they are on.
		u64 name = function == sleeper_function && pid ? (1ull << 63) - pid : address;
		if (!is_wheel)
			timer->source = source_of(name, function, timer->row, pid);
	}
	u32 is_rearm = cpu->cancelled == address || (timer->is_pending && is_moved);
	timer->function = function;
	timer->tgid = tgid;
	timer->pid = pid;
	timer->soft = soft;
	timer->is_pending = 1;
	struct row *row = row_at(timer->row);
	if (row) {
		add(row->arms, 1);
		if (is_rearm)
			add(row->rearms, 1);
		if (cpu->cancelled == address)
			add(row->halves, 1);
		measure(row, distance);
	}
	cpu->cancelled = 0;
	cpu->row = timer->row;
}

// A timer ends that is not known: it was armed before all this began, or has lost its place, as
// those do that were not looked at for longest. That begins a little before all places are taken.
inlined void unknown(void)
{
	struct used *used = used_now();
	if (used && used->timers > TIMERS / 2)
		add(used->forgotten, 1);
}

inlined void cancelled(u64 address)
{
	struct cpu *cpu = this_cpu();
	struct timer *timer = map_lookup(&timers, &address);
	if (!cpu)
		return;
	cpu->cancelled = 0;
	if (!timer) {
		unknown();
		return;
	}
	timer->is_pending = 0;
	cpu->cancelled = address;
	cpu->row = timer->row;
	struct row *row = row_at(timer->row);
	if (row)
		add(row->cancels, 1);
}

inlined void expires(u64 address, u64 function, u32 is_wheel)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	struct timer *timer = map_lookup(&timers, &address);
	if (!timer)
		unknown();
	u32 at = timer ? timer->row : ROWS;
	if (at >= ROWS || timer->function != function)
		at = row_of(function, 0, is_wheel);
	struct row *row = row_at(at);
	if (row) {
		add(row->expiries, 1);
		if (cpu->cancelled == address)
			add(row->halves, 1);
	}
	cpu->cancelled = 0;
	cpu->row = at;
	if (timer) {
		timer->is_pending = 0;
		if (!is_wheel && timer->source < SOURCES) {
			struct source *source = map_lookup(&sources, &timer->source);
			if (source)
				expired(source, timer->soft);
		}
	}
	// The tick is a means: a wheel timer that comes due in it is what woke the CPU.
	if (is_wheel) {
		if (cpu->wake == 2 && !(u32)current_pid_tgid()) {
			struct row *tick = row_at(cpu->wake_row);
			if (tick)
				add(tick->idle_wakeups, -1);
			if (row)
				add(row->idle_wakeups, 1);
		}
		cpu->wake = 0;
	} else if (cpu->wake == 1) {
		u32 is_tick = function == tick_function || function == tick_function_older;
		if (row)
			add(row->idle_wakeups, 1);
		cpu->wake = is_tick ? 2 : 0;
		cpu->wake_row = at;
	}
}

SEC("tp_btf/timer_start")
int timer_start(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];
	u64 left = timer->expires - jiffies64();
	s64 ticks = left;
	armed((u64)timer, (u64)timer->function, 0, ticks > 0 ? ticks * tick_ns : 0, 1, 0);
	return 0;
}

SEC("tp_btf/timer_cancel")
int timer_cancel(u64 *ctx)
{
	cancelled(ctx[0]);
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int timer_expire_entry(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];
	expires((u64)timer, (u64)timer->function, 1);
	return 0;
}

inlined int hrtimer_started(struct hrtimer *timer, u32 was_pending)
{
	u64 hard = timer->node.expires;
	u64 now = ktime_ns();
	// No machine runs for thirty years: that is the time of day.
	if (hard > 1000000000000000000ull)
		now += realtime_offset_ns;
	armed((u64)timer, (u64)timer->function, timer->_softexpires, hard > now ? hard - now : 0, 0,
	      was_pending);
	return 0;
}

// Some kernels move a pending timer without a cancel, and tell by the third argument.
SEC("tp_btf/hrtimer_start")
int hrtimer_start(u64 *ctx)
{
	return hrtimer_started((void *)ctx[0], ctx[2] & 1);
}

SEC("tp_btf/hrtimer_start")
int hrtimer_start_older(u64 *ctx)
{
	return hrtimer_started((void *)ctx[0], 0);
}

// Linux since 7.1: it was armed for a time that had passed, is not queued, and no expiry follows.
SEC("tp_btf/hrtimer_start_expired")
int hrtimer_start_expired(u64 *ctx)
{
	u64 address = ctx[0];
	struct timer *timer = map_lookup(&timers, &address);
	struct row *row = timer && timer->is_pending ? row_at(timer->row) : 0;
	if (timer)
		timer->is_pending = 0;
	if (row)
		add(row->expiries, 1);
	return 0;
}

SEC("tp_btf/hrtimer_cancel")
int hrtimer_cancel(u64 *ctx)
{
	cancelled(ctx[0]);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int hrtimer_expire_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	expires((u64)timer, (u64)timer->function, 0);
	return 0;
}

inlined int device_written(void)
{
	struct cpu *cpu = this_cpu();
	struct row *row = cpu ? row_at(cpu->row) : 0;
	if (row)
		add(row->device_writes, 1);
	return 0;
}

// Linux since 7.1: every programming of any device. KTIME_MAX shuts it down.
SEC("tp_btf/hrtimer_rearm")
int hrtimer_rearm(u64 *ctx)
{
	return ctx[0] == 0x7fffffffffffffffull ? 0 : device_written();
}

SEC("tp_btf/write_msr")
int write_msr(u64 *ctx)
{
	// IA32_TSC_DEADLINE: the timer device.
	return (u32)ctx[0] == 0x6e0 ? device_written() : 0;
}

// Adds the time since the last call on this CPU to the process that runs, which so far was not
// seen to leave it. If another thread was switched to, the kernel has shown nothing since: there
// are kernels that show no events while certain threads run.
static __attribute__((noinline)) int ran(u64 switches)
{
	struct cpu *cpu = this_cpu();
	u32 tgid = current_pid_tgid() >> 32;
	if (!cpu)
		return 0;
	u64 now = ktime_ns(), since = cpu->since, task = current_task();
	u32 is_unseen = cpu->task && cpu->task != task;
	struct used *used = used_now();
	if (is_unseen && since && used) {
		add(used->unseen_ns, now - since);
		used->unseen_tgid = cpu->tgid;
	}
	cpu->since = now;
	cpu->task = task;
	cpu->tgid = tgid;
	if (!tgid || !since)
		return 0;
	struct process *process = map_lookup(&processes, &tgid);
	if (!process) {
		struct process new = {};
		current_comm(new.comm, sizeof(new.comm));
		map_update(&processes, &tgid, &new, 1);
		process = map_lookup(&processes, &tgid);
	}
	if (!process) {
		failed();
		return 0;
	}
	if (!is_unseen)
		add(process->cpu_ns, now - since);
	add(process->switches, switches);
	return 0;
}

// The process that leaves the CPU is still the current one.
SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	struct task_struct *next = (void *)ctx[2];
	ran(1);
	if (cpu) {
		cpu->task = (u64)next;
		cpu->tgid = next->tgid;
	}
	return 0;
}

SEC("tp_btf/local_timer_entry")
int local_timer_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	ran(0);
	if (cpu) {
		cpu->in_hard = 1;
		cpu->wake = (u32)current_pid_tgid() ? 0 : 1;
	}
	return 0;
}

SEC("tp_btf/local_timer_exit")
int local_timer_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (cpu)
		cpu->in_hard = 0;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int irq_handler_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (cpu)
		cpu->in_hard = 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int irq_handler_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (cpu)
		cpu->in_hard = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int softirq_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (cpu)
		cpu->in_soft = 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (cpu)
		cpu->in_soft = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
