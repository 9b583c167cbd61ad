#include "supervise/outcome.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"

#define EXIT_WALL_TIME 124

static const char *const REASONS[] = {
  [REASON_NONE] = "none",
  [REASON_WALL_TIME] = "wall_time",
  [REASON_KILL] = "kill",
  [REASON_OUTPUT_LIMIT] = "output_limit",
  [REASON_DISK_LIMIT] = "disk_limit",
  [REASON_TERMINATED] = "terminated",
};

/* Zeros take the space if the file system has no fallocate. They are cut off after each write. */
static bool take_room(struct record *record) {
  if (fallocate(record->fd, FALLOC_FL_KEEP_SIZE, 0, TEXT_BYTES) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  struct text zeros = {.length = 0};
  record->is_filled = true;
  return write_all(record->fd, zeros.bytes, sizeof zeros.bytes, 0);
}

static bool write_part(struct record *record, const struct text *part) {
  if (!write_all(record->fd, part->bytes, part->length, record->bytes)) return false;
  record->bytes += (off_t)part->length;
  return !record->is_filled || ftruncate(record->fd, record->bytes) == 0;
}

static bool rename_record(struct record *record, const char *name) {
  bool is_renamed = renameat(record->dir_fd, record->name, record->dir_fd, name) == 0;
  if (is_renamed) record->name = name;
  return is_renamed;
}

/* An earlier launcher of the task may have been killed. Without O_TRUNC: ext4 writes a file to the disk at once that was
 * truncated, even when it was empty. */
static bool is_emptied(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (status.st_size == 0 || ftruncate(fd, 0) == 0);
}

struct fault record_reserve(struct record *record, int dir_fd) {
  struct text text;
  text_set(&text, "version=1\nlauncher_pid=%d\n", getpid());
  *record = (struct record){.dir_fd = dir_fd, .name = "outcome.new"};
  record->fd = openat(dir_fd, record->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool is_there = record->fd >= 0 && is_emptied(record->fd) && take_room(record) && write_part(record, &text);
  return is_there ? no_fault() : fault_at(STEP_OUTCOME);
}

struct fault record_start(struct record *record, const struct identity *identity) {
  struct text text;
  text_set(&text, "pid=%d\npgid=%d\nstart_time=%ld\nboot_id=%s\nstarted_ms=%ld\n", identity->pid, identity->pid,
           identity->start_time, identity->boot_id, identity->started_ms);
  bool is_there = write_part(record, &text) && rename_record(record, "started");
  return is_there ? no_fault() : fault_at(STEP_STARTED);
}

static const char *name_of_how(const struct outcome *outcome) {
  if (outcome->how == HOW_EXITED) return "exited";
  if (outcome->how == HOW_SIGNALED) return "signaled";
  if (outcome->how == HOW_ABANDONED) return "abandoned";
  return is_sandbox_step(outcome->fault.step) ? "sandbox_setup_failed" : "launch_failed";
}

/* Longest path that fits into the record. */
#define MAX_MOUNT_BYTES 1024

static void add_mount(struct text *text, const char *mount) {
  if (mount == NULL) return;
  size_t length = 0;
  while ((unsigned char)mount[length] >= ' ' && length < MAX_MOUNT_BYTES) length++;
  if (mount[length] == '\0') text_add(text, "mount=%s\n", mount);
}

static void add_if_known(struct text *text, const char *key, int64_t value) {
  if (value != ABSENT) text_add(text, "%s=%ld\n", key, value);
}

static void describe(const struct outcome *outcome, struct text *text) {
  const struct usage *usage = &outcome->usage;
  text_add(text, "how=%s\n", name_of_how(outcome));
  if (outcome->how == HOW_EXITED) text_add(text, "exit_code=%d\n", outcome->code);
  if (outcome->how == HOW_SIGNALED) text_add(text, "signal=%d\n", outcome->code);
  if (outcome->how == HOW_NOT_STARTED) {
    text_add(text, "step=%s\nerrno=%d\n", step_name(outcome->fault.step), outcome->fault.error);
    add_mount(text, outcome->mount);
  }
  text_add(text, "reason=%s\n", REASONS[outcome->reason]);
  text_add(text, "finished_ms=%ld\nduration_ms=%ld\n", outcome->finished_ms, outcome->duration_us / US_PER_MS);
  if (!outcome->is_usage_lost) {
    text_add(text, "user_cpu_ms=%ld\nsystem_cpu_ms=%ld\n", usage->user_us / US_PER_MS, usage->system_us / US_PER_MS);
    text_add(text, "max_rss_bytes=%ld\n", usage->max_rss_bytes);
  }
  add_if_known(text, "memory_peak_bytes", outcome->cgroup_usage.memory_peak_bytes);
  add_if_known(text, "oom_kills", outcome->cgroup_usage.oom_kills);
  add_if_known(text, "stdout_bytes", outcome->stdout_bytes);
  add_if_known(text, "stderr_bytes", outcome->stderr_bytes);
  add_if_known(text, "disk_bytes", outcome->disk_bytes);
  if (outcome->is_disk_too_deep) text_add(text, "disk_too_deep=1\n");
  text_add(text, "leftovers_killed=%ld\n", outcome->leftovers_killed);
  text_add(text, "leftovers_alive=%ld\nend=1\n", outcome->leftovers_alive);
}

struct fault record_end(struct record *record, const struct outcome *outcome) {
  struct text text;
  text_clear(&text);
  describe(outcome, &text);
  bool is_there = write_part(record, &text) && rename_record(record, "outcome");
  return is_there ? no_fault() : fault_at(STEP_OUTCOME);
}

struct fault record_sync(const struct record *record) {
  return fdatasync(record->fd) == 0 ? no_fault() : fault_at(STEP_OUTCOME);
}

int outcome_exit_code(const struct outcome *outcome) {
  if (outcome->how == HOW_NOT_STARTED || outcome->how == HOW_ABANDONED) return EXIT_NOT_STARTED;
  if (outcome->reason == REASON_WALL_TIME) return EXIT_WALL_TIME;
  return outcome->how == HOW_SIGNALED ? EXIT_SIGNAL_BASE + outcome->code : outcome->code;
}
