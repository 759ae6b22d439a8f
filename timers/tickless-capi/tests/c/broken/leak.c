/* Leaks local timers: the memory checkers must report what the library allocated. */
#include "tickless.h"

static __attribute__((noinline)) int lose(void) {
  tickless_key_t key;
  tickless_local_t *local;
  if (tickless_local_create(0, TICKLESS_PUSH_OUT_LAZY, &local) != TICKLESS_OK) return 2;
  if (tickless_local_insert(local, TICKLESS_COARSE, 0, &key) != TICKLESS_OK) return 2;
  local = 0;
  return local != 0;
}

/* Overwrites the stack, because a pointer that an earlier call left there would hide the leak. */
static __attribute__((noinline)) void wipe_stack(void) {
  volatile char stack[1 << 16];
  for (unsigned i = 0; i < sizeof stack; i++) stack[i] = 0;
}

int main(void) {
  int lost = lose();
  wipe_stack();
  return lost;
}
