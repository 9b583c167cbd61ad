#include "task-dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* No task is started twice, and no outcome overwritten, whatever a service believes after a crash. */
static bool has_run(int dir_fd) {
  return faccessat(dir_fd, "started", F_OK, 0) == 0 || faccessat(dir_fd, "outcome", F_OK, 0) == 0;
}

struct fault task_dir_lock(int *fd, const char *path) {
  *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*fd < 0) return fault_at(STEP_TASK_DIR);
  return flock(*fd, LOCK_EX | LOCK_NB) == 0 ? no_fault() : fault_at(STEP_LOCK);
}

struct fault task_dir_open(struct task_dir *dir, const struct arguments *arguments) {
  *dir = (struct task_dir){.stdout_fd = ABSENT, .stderr_fd = ABSENT};
  /* A spawner has opened the directory to lock it; others may lock a file of their choice. */
  bool is_open = arguments->spawner_pid != ABSENT;
  dir->fd = is_open ? (int)arguments->lock_fd : open(arguments->task_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir->fd < 0) return fault_at(STEP_TASK_DIR);
  dir->lock_fd = arguments->lock_fd == ABSENT ? dir->fd : (int)arguments->lock_fd;
  if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0) return fault_at(STEP_LOCK);
  return has_run(dir->fd) ? (struct fault){STEP_TASK_DIR, EEXIST} : no_fault();
}

/* Append, always: a task that opens /dev/stdout again, cutting it or not, must not leave a hole where it wrote before. */
static int open_log(int dir_fd, const char *name, int64_t owner) {
  int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  return fd < 0 || owner == ABSENT || fchown(fd, (uid_t)owner, (gid_t)owner) == 0 ? fd : ABSENT;
}

struct fault task_dir_open_logs(struct task_dir *dir, int64_t owner) {
  dir->stdout_fd = open_log(dir->fd, "stdout.log", owner);
  if (dir->stdout_fd < 0) return fault_at(STEP_LOGS);
  dir->stderr_fd = open_log(dir->fd, "stderr.log", owner);
  return dir->stderr_fd < 0 ? fault_at(STEP_LOGS) : no_fault();
}

void task_dir_close(struct task_dir *dir) {
  close(dir->stdout_fd);
  close(dir->stderr_fd);
  task_dir_leave(dir);
}

void task_dir_leave(const struct task_dir *dir) {
  if (dir->lock_fd != dir->fd) close(dir->lock_fd);
  close(dir->fd);
}

int64_t log_bytes(int fd) {
  struct stat status;
  return fd == ABSENT || fstat(fd, &status) != 0 ? ABSENT : (int64_t)status.st_size;
}
