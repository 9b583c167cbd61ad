/* The command line, the only input of a launcher. Its environment is that of the task. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mount-list.h"
#include "base/text.h"

/* The value of a number that was not given. */
#define ABSENT (-1)

#define MAX_TASK_ID_BYTES 128
/* The highest user id. The next number means no user. */
#define MAX_UID 4294967294

struct arguments {
  const char *task_id;
  const char *task_dir;
  /* Identifies the directory (task-dir.h); NULL for any. */
  const char *task_dir_id;
  const char *workdir;
  /* The name of the file in the directory of the task that is its standard input; NULL for /dev/null. */
  const char *stdin_name;
  int64_t wall_time_ms;
  int64_t grace_ms;
  int64_t give_up_ms;
  int64_t max_output_bytes;
  int64_t disk_bytes;
  /* Variables with texts to mask in the output (supervise/masked-logs.h). */
  int64_t mask_count;
  int64_t cpu_time_sec;
  int64_t address_space_bytes;
  const char *cgroup_v2;
  const char *cgroup_v1_pids;
  const char *cgroup_v1_memory;
  int64_t memory_max;
  int64_t pids_max;
  /* Features of the sandbox (features.h); NULL without a sandbox, and then the fields below have no meaning. */
  const char *sandbox;
  int64_t sandbox_uid;
  /* Where connections to a port of the sandbox's loopback go (sandbox/egress.h); NULL if nowhere. */
  const char *egress_socket;
  int64_t egress_port;
  int64_t lock_fd;
  int64_t notify_fd;
  /* The fork server that forked this launcher; ABSENT without one. No argument. */
  pid_t fork_server_pid;
  /* This launcher is in a network namespace for its task, with loopback. No argument. */
  bool has_network;
  char **command;
  /* The file view; empty without `mount` in `sandbox`. Last, because arguments_parse does not clear its unused entries. */
  struct mount_list mounts;
};

/* False with a sentence in `complaint` if an argument is wrong. */
bool arguments_parse(struct arguments *arguments, char **argv, struct text *complaint);

/* Whether the task id is valid, even if other arguments are wrong. */
bool arguments_name_task(const struct arguments *arguments);

/* Parses a descriptor. Standard streams are refused. */
bool arguments_parse_fd(const char *string, int64_t *fd);

#endif
