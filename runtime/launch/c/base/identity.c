#include "base/identity.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/process-stat.h"

/* Empty until it was read. */
static char boot_id[BOOT_ID_BYTES];

bool identity_read_boot(void) {
  if (boot_id[0] != '\0') return true;
  if (!read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id)) return false;
  boot_id[strcspn(boot_id, "\n")] = '\0';
  return true;
}

struct fault identity_find(struct identity *identity, pid_t pid, int64_t not_before) {
  *identity = (struct identity){.pid = pid, .start_time = boot_ticks(), .started_ms = epoch_ms()};
  /* One that was born within this tick needs no look: that takes the kernel a hundredth of all that a short task does. */
  bool is_known = identity->start_time == not_before || process_stat(pid, STAT_START_TIME, &identity->start_time);
  if (!is_known || !identity_read_boot()) return fault_at(STEP_STARTED);
  memcpy(identity->boot_id, boot_id, sizeof boot_id);
  return no_fault();
}
