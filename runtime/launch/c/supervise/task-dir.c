#include "supervise/task-dir.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

/* No task starts twice and no outcome is overwritten, even if serve is wrong after a crash. */
static bool has_run(int dir_fd) {
  return faccessat(dir_fd, "started", F_OK, 0) == 0 || faccessat(dir_fd, "outcome", F_OK, 0) == 0;
}

static bool is_meant(int dir_fd, const char *task_dir_id) {
  struct stat status;
  if (task_dir_id == NULL) return true;
  if (fstatat(dir_fd, "request.json", &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  struct text id;
  int64_t changed_ns = (int64_t)status.st_mtim.tv_sec * NS_PER_SEC + status.st_mtim.tv_nsec;
  return strcmp(text_set(&id, "%lu:%ld", status.st_ino, changed_ns), task_dir_id) == 0;
}

/* Checks the identity under the lock: while it is held, the directory stays that of the task. */
static struct fault lock_meant(int lock_fd, int dir_fd, const char *task_dir_id) {
  if (flock(lock_fd, LOCK_EX | LOCK_NB) != 0) return fault_at(STEP_LOCK);
  return is_meant(dir_fd, task_dir_id) ? no_fault() : (struct fault){.step = STEP_TASK_DIR, .error = ESTALE};
}

struct fault task_dir_lock(int *fd, const struct arguments *arguments) {
  *fd = open(arguments->task_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*fd < 0) return fault_at(STEP_TASK_DIR);
  return lock_meant(*fd, *fd, arguments->task_dir_id);
}

struct fault task_dir_open(struct task_dir *dir, const struct arguments *arguments) {
  *dir = (struct task_dir){.stdin_fd = ABSENT, .stdout_fd = ABSENT, .stderr_fd = ABSENT};
  /* The fork server opened the directory to lock it. --lock-fd of others may be any file. */
  bool is_open = arguments->fork_server_pid != ABSENT;
  dir->fd = is_open ? (int)arguments->lock_fd : open(arguments->task_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir->fd < 0) return fault_at(STEP_TASK_DIR);
  dir->lock_fd = arguments->lock_fd == ABSENT ? dir->fd : (int)arguments->lock_fd;
  struct fault fault = lock_meant(dir->lock_fd, dir->fd, arguments->task_dir_id);
  if (is_fault(fault)) return fault;
  return has_run(dir->fd) ? (struct fault){.step = STEP_TASK_DIR, .error = EEXIST} : no_fault();
}

bool share_with_group(int fd, gid_t group) { return fchown(fd, (uid_t)-1, group) == 0 && fchmod(fd, 0660) == 0; }

/* A lease keeps others from opening the file. The kernel grants it on no file that somebody else has open. */
static bool keep_from_lease(int dir_fd, const char *name) {
  return openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) >= 0;
}

/* Opened for append: after a task truncates /dev/stdout, writes must not leave a hole. */
static int open_log(int dir_fd, const char *name, int64_t group) {
  int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ABSENT;
  return (group == ABSENT ? keep_from_lease(dir_fd, name) : share_with_group(fd, (gid_t)group)) ? fd : ABSENT;
}

struct fault task_dir_open_logs(struct task_dir *dir, int64_t group) {
  dir->stdout_fd = open_log(dir->fd, "stdout.log", group);
  if (dir->stdout_fd < 0) return fault_at(STEP_LOGS);
  dir->stderr_fd = open_log(dir->fd, "stderr.log", group);
  dir->task_stdout_fd = dir->stdout_fd;
  dir->task_stderr_fd = dir->stderr_fd;
  return dir->stderr_fd < 0 ? fault_at(STEP_LOGS) : no_fault();
}

struct fault task_dir_open_stdin(struct task_dir *dir, const char *name) {
  dir->stdin_fd = name == NULL ? open("/dev/null", O_RDONLY | O_CLOEXEC)
                               : openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  return dir->stdin_fd < 0 ? fault_at(STEP_STDIO) : no_fault();
}

void task_dir_leave(const struct task_dir *dir) {
  if (dir->lock_fd != dir->fd) close(dir->lock_fd);
  close(dir->fd);
}

int64_t log_bytes(int fd) {
  struct stat status;
  return fd == ABSENT || fstat(fd, &status) != 0 ? ABSENT : (int64_t)status.st_size;
}
