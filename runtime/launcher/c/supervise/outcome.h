/*
 * The record of a task: lines `key=value`, in one file that grows.
 *
 * Its first part names the launcher, which can be asked to give up from then on. It is there before anything is set up,
 * under the name `outcome.new`:
 *
 *   version=1
 *   launcher_pid=
 *
 * The second part names the task. It is there before the program is, under the name `started`:
 *
 *   pid= pgid= start_time= boot_id= started_ms=
 *
 * The third part says how it ended. It is added when nothing of the task is left; then the file is renamed
 * to `outcome`. Only one that has the last line counts as an outcome:
 *
 *   how=          exited              the main process returned from main, or called exit
 *                 signaled            a signal ended it
 *                 abandoned           KILL did not end it within --give-up-ms: it hangs in the kernel
 *                 launch_failed       we could not start it
 *                 sandbox_setup_failed  we could not fence it in as asked, so it was not started
 *   exit_code=    0 to 255; with how=exited only
 *   signal=       its number; with how=signaled only
 *   step= errno=  what failed (fault.h) and the system's reason; with launch_failed and sandbox_setup_failed only
 *   mount=        path of the mount that failed (mount_list_name); absent for other failures, and for paths that are long or
 *                 have control characters
 *   reason=       what made us end it, the first if there were several: none, wall_time, kill (a request of our
 *                 service), output_limit, terminated (a signal to the launcher, by somebody else). Set only when a signal
 *                 was sent because of it: a task that came to its end before has none.
 *   finished_ms=  when the main process had ended, or we gave up (milliseconds since 1970)
 *   duration_ms=  from its start to its end, by a clock that never jumps; 0 when no process was made
 *   user_cpu_ms= system_cpu_ms= max_rss_bytes=
 *                 of the main process and everything of the task that was waited for, by it or by us; the memory is that
 *                 of the largest single process; absent where an init was killed, and what it had waited for is lost
 *   memory_peak_bytes= oom_kills=
 *                 of the memory cgroup; absent without one, or where the kernel does not say
 *   stdout_bytes= stderr_bytes=
 *                 sizes of the logs at the end; absent when they were not opened
 *   leftovers_killed=  processes that were still there when the main process had ended, and were killed
 *   leftovers_alive=   processes that could not be killed within --give-up-ms, the main process included
 *   end=1
 *
 * The lines from pid to started_ms are absent when no process was made, or none that became the task. Room for all of it is
 * taken before the task starts: a disk that fills up later cannot lose an ending.
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

enum reason { REASON_NONE, REASON_WALL_TIME, REASON_KILL, REASON_OUTPUT_LIMIT, REASON_TERMINATED };

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
  /* Who could have told did not live to. */
  bool is_usage_lost;
  int64_t stdout_bytes;
  int64_t stderr_bytes;
  int64_t leftovers_killed;
  int64_t leftovers_alive;
};

/* The file, under whatever name it has by now. */
struct record {
  int dir_fd;
  int fd;
  const char *name;
  /* Written so far. */
  off_t bytes;
  /* With zeros, which took the room. */
  bool is_filled;
};

/* Makes the file, takes room for it on the disk and writes the first part. */
struct fault record_reserve(struct record *record, int dir_fd);

/* The second part: from then on it is known who runs. */
struct fault record_start(struct record *record, const struct identity *identity);

/* The third part: from then on it is known how it ended. */
struct fault record_end(struct record *record, const struct outcome *outcome);

/* From then on also after a power cut. */
struct fault record_sync(const struct record *record);

#define EXIT_NOT_STARTED 125
/* The task was started and has ended, but how could not be written down. */
#define EXIT_OUTCOME_LOST 123
#define EXIT_SIGNAL_BASE 128

/* As far as an exit code can say it: the task's own, 128 + signal, 124 wall time, 125 not started or abandoned. */
int outcome_exit_code(const struct outcome *outcome);

#endif
