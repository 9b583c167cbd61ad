/*
 * The record of a task: lines `key=value` in a file that grows in three parts.
 *
 * The first part names the launcher, so that serve can signal it. It is written before anything is set up, to `outcome.new`:
 *
 *   version=1
 *   launcher_pid=
 *
 * The second part identifies the task. It is written before the program starts; then the file is renamed to `started`:
 *
 *   pid= pgid= start_time= boot_id= started_ms=
 *
 * The third part says how the task ended. It is written when nothing of the task is left; then the file is renamed to
 * `outcome`. Without the last line it is no outcome:
 *
 *   how=          exited              the main process returned from main, or called exit
 *                 signaled            a signal ended it
 *                 abandoned           KILL did not end it within --give-up-ms: it hangs in the kernel
 *                 launch_failed       the launcher could not start it
 *                 sandbox_setup_failed  the sandbox could not be set up, so it was not started
 *   exit_code=    0 to 255; with how=exited only
 *   signal=       its number; with how=signaled only
 *   step= errno=  the step that failed (fault.h) and its errno; with launch_failed and sandbox_setup_failed only
 *   mount=        path of the failed mount (mount_list_name); absent for other failures, and for a path that is long or has
 *                 control characters
 *   reason=       why the launcher ended the task, the first reason only: none, wall_time, kill (requested by serve),
 *                 output_limit, disk_limit, terminated (any other signal to the launcher). none if the task ended before a signal was sent
 *   finished_ms=  when the main process ended or was given up (milliseconds since 1970)
 *   duration_ms=  from start to end, by the monotonic clock; 0 without a process
 *   user_cpu_ms= system_cpu_ms= max_rss_bytes=
 *                 usage of all reaped processes of the task; max_rss_bytes of the largest one; absent if the init was killed,
 *                 because its numbers are lost
 *   memory_peak_bytes= oom_kills=
 *                 of the memory cgroup; absent without one, or if the kernel does not report them
 *   stdout_bytes= stderr_bytes=
 *                 sizes of the logs at the end; absent when they were not opened
 *   disk_bytes=   bytes that the task has allocated in its workspace at the end; with --disk-bytes only
 *   disk_too_deep=1  directories of the workspace were too deep to be counted; absent otherwise
 *   leftovers_killed=  processes that outlived the main process and were killed
 *   leftovers_alive=   processes that could not be killed within --give-up-ms, the main process included
 *   end=1
 *
 * Without a task process, the second part is absent. Disk space for the whole record is allocated before the task starts, so
 * a full disk cannot lose an outcome.
 */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/identity.h"
#include "sandbox/cgroup.h"
#include "supervise/usage.h"

enum how { HOW_EXITED, HOW_SIGNALED, HOW_ABANDONED, HOW_NOT_STARTED };

enum reason { REASON_NONE, REASON_WALL_TIME, REASON_KILL, REASON_OUTPUT_LIMIT, REASON_DISK_LIMIT, REASON_TERMINATED };

struct outcome {
  enum how how;
  /* The exit code or the signal. */
  int code;
  enum reason reason;
  /* With HOW_NOT_STARTED. */
  struct fault fault;
  /* Path of the mount that failed, or NULL. */
  const char *mount;
  int64_t finished_ms;
  int64_t duration_us;
  struct cgroup_usage cgroup_usage;
  struct usage usage;
  /* The init was killed, and its usage is lost. */
  bool is_usage_lost;
  int64_t stdout_bytes;
  int64_t stderr_bytes;
  /* ABSENT without a limit. */
  int64_t disk_bytes;
  bool is_disk_too_deep;
  int64_t leftovers_killed;
  int64_t leftovers_alive;
};

/* The file of the record. */
struct record {
  int dir_fd;
  int fd;
  const char *name;
  /* Bytes written so far. */
  off_t bytes;
  /* Whether zeros allocate the space, because fallocate is not supported. */
  bool is_filled;
};

/* Creates the file, allocates its space and writes the first part. */
struct fault record_reserve(struct record *record, int dir_fd);

/* Writes the second part. */
struct fault record_start(struct record *record, const struct identity *identity);

/* Writes the third part. */
struct fault record_end(struct record *record, const struct outcome *outcome);

/* Makes the record survive a power failure. */
struct fault record_sync(const struct record *record);

#define EXIT_NOT_STARTED 125
/* The task ended, but the outcome could not be written. */
#define EXIT_OUTCOME_LOST 123
#define EXIT_SIGNAL_BASE 128

/* The exit code of the launcher: that of the task, 128 + signal, 124 for wall time, 125 for not started or abandoned. */
int outcome_exit_code(const struct outcome *outcome);

#endif
