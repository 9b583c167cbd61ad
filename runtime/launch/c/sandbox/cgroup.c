#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/pids.h"

/* How long to wait for the members of a leftover cgroup, and the interval between attempts. */
#define LEFT_PATIENCE_US 1000000
#define LEFT_LOOK_US 1000

static bool write_number(int cgroup_fd, const char *name, int64_t number) {
  struct text text;
  return write_file(cgroup_fd, name, text_set(&text, "%ld", number));
}

/* For an attribute that not every kernel has. */
static bool write_if_there(int cgroup_fd, const char *name, const char *value) {
  return write_file(cgroup_fd, name, value) || errno == ENOENT;
}

static bool write_number_if_there(int cgroup_fd, const char *name, int64_t number) {
  return write_number(cgroup_fd, name, number) || errno == ENOENT;
}

static bool limit_memory(const struct cgroup *cgroup, int64_t bytes) {
  if (cgroup->is_v2)
    return write_number(cgroup->memory_fd, "memory.max", bytes) &&
           write_if_there(cgroup->memory_fd, "memory.swap.max", "0") &&
           write_if_there(cgroup->memory_fd, "memory.oom.group", "1");
  /* In this order, because memsw may not be lower than memory. Buffers of IP sockets have a limit of their own. */
  return write_number(cgroup->memory_fd, "memory.limit_in_bytes", bytes) &&
         write_number_if_there(cgroup->memory_fd, "memory.memsw.limit_in_bytes", bytes) &&
         write_number_if_there(cgroup->memory_fd, "memory.kmem.tcp.limit_in_bytes", bytes);
}

/*
 * An existing cgroup was left by a launcher that was killed before its task started. It may still contain the child of that
 * launcher, which is being killed. It is given up if other processes use it.
 */
static bool remove_left(const char *path) {
  int64_t until_us = monotonic_us() + LEFT_PATIENCE_US;
  while (rmdir(path) != 0) {
    if (errno != EBUSY || monotonic_us() >= until_us) return errno == ENOENT;
    struct timespec pause = timespec_of_us(LEFT_LOOK_US);
    nanosleep(&pause, NULL);
  }
  return true;
}

/* A descriptor of a new cgroup. */
static int make_cgroup(const char *path) {
  if (mkdir(path, 0755) != 0 && (errno != EEXIST || !remove_left(path) || mkdir(path, 0755) != 0)) return ABSENT;
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct fault cgroup_create(struct cgroup *cgroup, const struct arguments *arguments, int own_processes) {
  *cgroup = (struct cgroup){
    .is_v2 = arguments->cgroup_v2 != NULL,
    .pids_path = arguments->cgroup_v2 != NULL ? arguments->cgroup_v2 : arguments->cgroup_v1_pids,
    .memory_path = arguments->cgroup_v2 != NULL ? arguments->cgroup_v2 : arguments->cgroup_v1_memory,
    .pids_fd = ABSENT,
    .memory_fd = ABSENT,
  };
  if (cgroup->pids_path != NULL && (cgroup->pids_fd = make_cgroup(cgroup->pids_path)) < 0) return fault_at(STEP_CGROUP_CREATE);
  if (cgroup->is_v2) cgroup->memory_fd = cgroup->pids_fd;
  else if (cgroup->memory_path != NULL && (cgroup->memory_fd = make_cgroup(cgroup->memory_path)) < 0)
    return fault_at(STEP_CGROUP_CREATE);
  if (arguments->memory_max != ABSENT && !limit_memory(cgroup, arguments->memory_max)) return fault_at(STEP_CGROUP_MEMORY);
  if (arguments->pids_max != ABSENT && !write_number(cgroup->pids_fd, "pids.max", arguments->pids_max + own_processes))
    return fault_at(STEP_CGROUP_PIDS);
  return no_fault();
}

int cgroup_birth_fd(const struct cgroup *cgroup) { return cgroup->is_v2 ? cgroup->pids_fd : ABSENT; }

struct fault cgroup_join(const struct cgroup *cgroup) {
  /*
   * "0" means the writer, in any pid namespace. In version 1 a process with one thread is moved through `tasks`: through
   * `cgroup.procs` the kernel waits until no processor forks, which takes 9 ms of 14 if tasks come one by one.
   */
  const char *members = cgroup->is_v2 ? "cgroup.procs" : "tasks";
  if (cgroup->pids_fd != ABSENT && !write_file(cgroup->pids_fd, members, "0")) return fault_at(STEP_CGROUP_JOIN);
  if (cgroup->memory_fd != ABSENT && cgroup->memory_fd != cgroup->pids_fd &&
      !write_file(cgroup->memory_fd, members, "0"))
    return fault_at(STEP_CGROUP_JOIN);
  return no_fault();
}

static int member_fd(const struct cgroup *cgroup) { return cgroup->pids_fd != ABSENT ? cgroup->pids_fd : cgroup->memory_fd; }

bool cgroup_is_there(const struct cgroup *cgroup) { return member_fd(cgroup) != ABSENT; }

void cgroup_each_thread(const struct cgroup *cgroup, pid_visitor *visit, void *context) {
  if (cgroup_is_there(cgroup)) for_each_pid(member_fd(cgroup), cgroup->is_v2 ? "cgroup.threads" : "tasks", visit, context);
}

/* Pidfds open at a time, far below the descriptor limit. */
#define HELD_AT_ONCE 64

/*
 * A member may end between the list and the signal, and its pid may be reused. So a batch of pidfds is opened, then the list
 * is read again, and only pids that are still on it are signalled. Such a pidfd refers to the member, because a pid is reused
 * only after its process was reaped.
 */
struct round {
  int cgroup_fd;
  int signal;
  pid_t main_pid;
  bool has_main;
  int count;
  struct {
    pid_t pid;
    int fd;
    bool is_member;
  } held[HELD_AT_ONCE];
};

static void confirm_member(pid_t pid, void *context) {
  struct round *round = context;
  for (int i = 0; i < round->count; i++)
    if (round->held[i].pid == pid) round->held[i].is_member = true;
}

static void signal_held(struct round *round) {
  if (round->count > 0) for_each_pid(round->cgroup_fd, "cgroup.procs", confirm_member, round);
  for (int i = 0; i < round->count; i++) {
    if (round->held[i].is_member) syscall(SYS_pidfd_send_signal, round->held[i].fd, round->signal, NULL, 0);
    close(round->held[i].fd);
  }
  round->count = 0;
}

/*
 * Without pidfds (before Linux 5.3, under a filter, or without free descriptors) the pid is signalled. Reuse within these
 * microseconds would take all other pids.
 */
static void signal_member(pid_t pid, void *context) {
  struct round *round = context;
  if (pid == round->main_pid) round->has_main = true;
  if (pid <= 1 || pid == getpid()) return;
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) {
    if (errno != ESRCH) kill(pid, round->signal);
    return;
  }
  round->held[round->count].pid = pid;
  round->held[round->count].fd = fd;
  round->held[round->count].is_member = false;
  if (++round->count == HELD_AT_ONCE) signal_held(round);
}

bool cgroup_signal(const struct cgroup *cgroup, int signal, pid_t main_pid) {
  struct round round = {.cgroup_fd = member_fd(cgroup), .signal = signal, .main_pid = main_pid};
  if (round.cgroup_fd == ABSENT) return false;
  for_each_pid(round.cgroup_fd, "cgroup.procs", signal_member, &round);
  signal_held(&round);
  return round.has_main;
}

void cgroup_kill(const struct cgroup *cgroup) {
  if (member_fd(cgroup) == ABSENT) return;
  /* Without new members, the list can only get shorter. */
  if (cgroup->pids_fd != ABSENT) write_file(cgroup->pids_fd, "pids.max", "0");
  if (cgroup->is_v2 && write_file(cgroup->pids_fd, "cgroup.kill", "1")) return;
  cgroup_signal(cgroup, SIGKILL, 0);
}

/* The number in the file `name`, in the line that begins with `key`. */
static int64_t read_number(int cgroup_fd, const char *name, const char *key) {
  char content[1024];
  if (!read_small_file(cgroup_fd, name, content, sizeof content)) return ABSENT;
  size_t key_length = strlen(key);
  for (const char *line = content; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, key, key_length) == 0) return strtoll(line + key_length, NULL, 10);
  }
  return ABSENT;
}

struct cgroup_usage cgroup_read(const struct cgroup *cgroup) {
  if (cgroup->memory_fd == ABSENT) return (struct cgroup_usage){ABSENT, ABSENT};
  const char *peak = cgroup->is_v2 ? "memory.peak" : "memory.max_usage_in_bytes";
  const char *events = cgroup->is_v2 ? "memory.events" : "memory.oom_control";
  return (struct cgroup_usage){
    .memory_peak_bytes = read_number(cgroup->memory_fd, peak, ""),
    .oom_kills = read_number(cgroup->memory_fd, events, "oom_kill "),
  };
}

static bool remove_cgroup(int fd, const char *path) { return fd == ABSENT || rmdir(path) == 0 || errno == ENOENT; }

bool cgroup_remove(const struct cgroup *cgroup) {
  bool is_gone = remove_cgroup(cgroup->pids_fd, cgroup->pids_path);
  if (cgroup->memory_fd == cgroup->pids_fd) return is_gone;
  return remove_cgroup(cgroup->memory_fd, cgroup->memory_path) && is_gone;
}
