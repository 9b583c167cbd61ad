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

struct fault identity_of(struct identity *identity, pid_t launcher_pid, pid_t pid) {
  *identity = (struct identity){.launcher_pid = launcher_pid, .pid = pid, .started_ms = epoch_ms()};
  if (!read_start_time(pid, &identity->start_time) || !identity_read_boot()) return fault_at(STEP_STARTED);
  memcpy(identity->boot_id, boot_id, sizeof boot_id);
  return no_fault();
}
