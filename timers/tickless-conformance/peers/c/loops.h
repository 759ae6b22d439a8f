// Event loops in C, called by src/foreign.rs. Times are nanoseconds since the loop was opened.
#include <stdbool.h>
#include <stdint.h>

typedef struct loop loop;
typedef struct timer timer;
typedef void fired(void *keys, uint32_t key);

// Mirrored by `Library` in src/foreign.rs.
struct library {
  loop *(*open)(void);
  timer *(*arm)(loop *, uint32_t key, uint64_t at);
  void (*move)(loop *, timer *, uint64_t at);
  // Whether the timer was pending.
  bool (*cancel)(loop *, timer *);
  // Frees a timer that is not pending.
  void (*release)(loop *, timer *);
  // One turn that does not wait: calls `fired` for each timer that is due.
  void (*turn)(loop *, fired *, void *keys);
  void (*close)(loop *);
};
