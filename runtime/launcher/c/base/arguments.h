/* The command line: all that the launcher is told. Its environment is the task's and is not looked at. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mount-list.h"
#include "base/text.h"

/* A number that was not given. */
#define ABSENT (-1)

#define MAX_TASK_ID_BYTES 128
/* The highest user id: the one above it means none. */
#define MAX_UID 4294967294

struct arguments {
  const char *task_id;
  const char *task_dir;
  /* Which directory of that name is meant (task-dir.h); NULL for any. */
  const char *task_dir_id;
  const char *workdir;
  int64_t wall_time_ms;
  int64_t grace_ms;
  int64_t give_up_ms;
  int64_t max_output_bytes;
  int64_t cpu_time_sec;
  int64_t address_space_bytes;
  const char *cgroup_v2;
  const char *cgroup_v1_pids;
  const char *cgroup_v1_memory;
  int64_t memory_max;
  int64_t pids_max;
  /* What the sandbox is made of (features.h); NULL without one. The rest of it means nothing then. */
  const char *sandbox;
  int64_t sandbox_uid;
  int64_t lock_fd;
  int64_t notify_fd;
  /* Not given, but known: of the fork server that forked us; ABSENT where that was somebody else. */
  pid_t fork_server_pid;
  char **command;
  /* The file view; empty without `mount` in `sandbox`. Last, because arguments_parse does not clear its unused entries. */
  struct mount_list mounts;
};

/* False with a sentence in `complaint` when they cannot be meant. */
bool arguments_parse(struct arguments *arguments, char **argv, struct text *complaint);

/* Whether they name a task, though all the rest be wrong. */
bool arguments_name_task(const struct arguments *arguments);

/* A descriptor that is no standard stream. */
bool arguments_parse_fd(const char *string, int64_t *fd);

#endif
