/* Loses local timers: the memory checkers must see what the library allocated. */
#include "tickless.h"

int main(void) {
  tickless_key_t key;
  tickless_local_t *local;
  if (tickless_local_create(0, 0, TICKLESS_PUSH_OUT_LAZY, &local) != TICKLESS_OK) return 2;
  if (tickless_local_insert(local, TICKLESS_COARSE, 0, &key) != TICKLESS_OK) return 2;
  local = 0;
  return local != 0;
}
