#include "supervise/hold.h"

#include <errno.h>
#include <unistd.h>

bool hold_await(struct hold *hold) {
  if (!hold->is_waiting) return !hold->is_discarded;
  char word;
  ssize_t got;
  while ((got = read(STDIN_FILENO, &word, 1)) < 0 && errno == EINTR) continue;
  hold->is_waiting = false;
  hold->is_discarded = got != 1;
  return !hold->is_discarded;
}
