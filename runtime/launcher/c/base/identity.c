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

/* One that was born within this tick needs no look: that takes the kernel a hundredth of all that a short task does. */
static bool find_start_time(struct identity *identity) {
  int64_t now = boot_ticks();
  return identity->start_time == now || process_stat(identity->pid, STAT_START_TIME, &identity->start_time);
}

struct identity identity_before_birth(void) {
  return (struct identity){.launcher_pid = getpid(), .start_time = boot_ticks()};
}

struct fault identity_after_birth(struct identity *identity, pid_t pid) {
  identity->pid = pid;
  identity->started_ms = epoch_ms();
  if (!find_start_time(identity) || !identity_read_boot()) return fault_at(STEP_STARTED);
  memcpy(identity->boot_id, boot_id, sizeof boot_id);
  return no_fault();
}
