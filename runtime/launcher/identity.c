#include "identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "files.h"
#include "text.h"

/* Fields of /proc/PID/stat, from 1. */
#define FIELD_STATE 3
#define FIELD_START_TIME 22

static bool read_start_time(pid_t pid, int64_t *start_time) {
  struct text path;
  text_clear(&path);
  text_add(&path, "/proc/");
  text_add_number(&path, pid);
  text_add(&path, "/stat");
  char stat[1024];
  if (read_small_file(AT_FDCWD, text_string(&path), stat, sizeof stat) < 0) return false;
  /* `pid (name) state ppid ...`, where the name may hold anything. */
  const char *at = strrchr(stat, ')');
  if (at != NULL) at++;
  for (int field = FIELD_STATE; at != NULL && field < FIELD_START_TIME; field++) at = strchr(at + 1, ' ');
  if (at == NULL) {
    errno = EPROTO;
    return false;
  }
  *start_time = strtoll(at, NULL, 10);
  return true;
}

/* Empty until it was read. */
static char boot_id[BOOT_ID_BYTES];

bool identity_read_boot(void) {
  if (boot_id[0] != '\0') return true;
  if (read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id) < 0) return false;
  boot_id[strcspn(boot_id, "\n")] = '\0';
  return true;
}

/* One that was born within this tick needs no look: that takes the kernel a hundredth of all that a short task does. */
static bool find_start_time(struct identity *identity) {
  int64_t now = boot_ticks();
  return identity->start_time == now || read_start_time(identity->pid, &identity->start_time);
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
