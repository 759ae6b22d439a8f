# Reads `perf script` with the fields comm,tid,cpu,time,period,event,ip,sym,trace and prints the
# share of timer code in the CPUs' time, for ci/project-perf.sh:
#     sampled SHARE TIME       the share of samples in timer code, and the sampled time
#     interrupts COUNT SECONDS CALLBACKS AFTER   the number of timer interrupts, except those that
#                              only sample; their time without callbacks; the number of callbacks;
#                              and the time after the last callback, mostly the device's write
#     function SHARE NAME      the share of samples in each function
#
# A sample counts if its innermost function is a timer function, or a helper that a timer function
# calls directly or through other helpers. Callbacks and the functions that they call do not count.

BEGIN {
  timers = "^_*(hrtimer_(start_range_ns|start_range_ns_common|try_to_cancel|cancel|active" \
    "|forward|reprogram|force_reprogram|interrupt|run_queues|run_softirq|get_next_event" \
    "|next_event_base|next_event_without|get_next_event_without|update_next_event|update_base" \
    "|init|setup|init_sleeper|setup_sleeper_on_stack|sleeper_start_expires|reprogram_event" \
    "|get_remaining|update_softirq_timer|rearm|start_expires)" \
    "|(enqueue|remove|switch|lock|unlock)_hrtimer(_base)?|timerqueue_(add|del|iterate_next)" \
    "|mod_timer(_pending)?|timer_reduce|add_timer(_on|_local|_global)?" \
    "|timer_(delete|delete_sync|delete_sync_try|shutdown|shutdown_sync|init_key)" \
    "|del_timer(_sync)?|try_to_del_timer_sync|detach_if_pending|detach_timer" \
    "|(enqueue|internal_add)_timer|calc_wheel_index|(lock|get)_timer_(this_cpu_)?base" \
    "|forward_timer_base|run_timer_softirq|run_timer_base|run_timers|collect_expired_timers" \
    "|expire_timers|call_timer_fn|next_timer_interrupt|next_expiry_recalc|timer_base_.*" \
    "|tmigr_.*|clockevents_program_event|lapic_next_(deadline|event)" \
    "|(asm_)?sysvec_apic_timer_interrupt|local_apic_timer_interrupt)(\\.|$)"
  helpers = "^_*(raw_spin_.*|rb_.*|ktime_get.*|read_tsc|.*clock_get_cycles|sched_clock.*" \
    "|native_write_msr.*|pv_.*|pvm_.*|pvclock_.*|x86_indirect_.*|x86_return_thunk|retbleed_.*" \
    "|preempt_.*|rcu_.*|irq_(enter|exit)(_rcu)?|irqentry_(enter|exit)|error_(entry|return)" \
    "|do_trace_write_msr|native_apic_msr_eoi|native_.*|memset.*|fentry__)(\\.|$)"
}

/^[^\t ]|^ +[^\t]/ && $0 !~ /^\t/ && match($0, / \[[0-9]+\] +[0-9.]+: /) {
  split(substr($0, RSTART, RLENGTH), place, /[][ :]+/)
  cpu = place[2]
  at = place[3]
  rest = substr($0, RSTART + RLENGTH)
  sub(/^ +/, "", rest)
  period = rest + 0
  sub(/^[0-9]+ +/, "", rest)
  if (rest ~ /^irq_vectors:local_timer_entry:/) {
    began[cpu] = at; entered[cpu] = callbacks[cpu] = took[cpu] = own[cpu] = begun[cpu] = 0
  } else if (rest ~ /^timer:hrtimer_expire_entry:/) {
    entered[cpu] = at
    if (rest ~ /function=perf_/) own[cpu]++
    begun[cpu]++
  } else if (rest ~ /^timer:hrtimer_expire_exit:/) {
    # The time between two records of one tracepoint is the cost of the tracepoint.
    if (entered[cpu]) { took[cpu] += at - entered[cpu]; callbacks[cpu]++; entered[cpu] = 0 }
    left[cpu] = at
  } else if (rest ~ /^irq_vectors:local_timer_exit:/) {
    if (began[cpu] && (!own[cpu] || own[cpu] < begun[cpu])) {
      count++; seconds += at - began[cpu] - took[cpu]; called += callbacks[cpu]
      after += at - (callbacks[cpu] ? left[cpu] : began[cpu])
    }
    began[cpu] = 0
  } else {
    all += period; innermost = ""; is_open = 1
  }
  next
}

/^\t/ && is_open {
  name = $2
  if (!innermost) innermost = name
  if (name ~ timers) { timer += period; within[innermost] += period; is_open = 0 }
  else if (name !~ helpers) is_open = 0
}

END {
  printf "sampled %.6f %.0f\n", all ? timer / all : 0, all
  printf "interrupts %d %.9f %d %.9f\n", count, seconds, called, after
  for (name in within) printf "function %.6f %s\n", within[name] / all, name
}
