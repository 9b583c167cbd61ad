#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For kernels before 5.9, and filters that do not know the call. */
static bool close_one_by_one(int first, int last) {
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) return false;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    int fd = atoi(entry->d_name);
    if (fd >= first && fd <= last && entry->d_name[0] != '.' && fd != dirfd(directory)) close(fd);
  }
  closedir(directory);
  return true;
}

static bool close_range_of(int first, int last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return true;
  return close_one_by_one(first, last);
}

static bool keep_from_task(int fd) { return fd == ABSENT || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0; }

struct fault descriptors_tidy(int lock_fd, int notify_fd) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return fault_at(STEP_DESCRIPTORS);

  if (!keep_from_task(lock_fd) || !keep_from_task(notify_fd)) return fault_at(STEP_DESCRIPTORS);
  int flags = notify_fd == ABSENT ? O_NONBLOCK : fcntl(notify_fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) fcntl(notify_fd, F_SETFL, flags | O_NONBLOCK);

  int lower = lock_fd < notify_fd ? lock_fd : notify_fd;
  int upper = lock_fd < notify_fd ? notify_fd : lock_fd;
  if (lower < STDERR_FILENO) lower = STDERR_FILENO;
  if (upper < STDERR_FILENO) upper = STDERR_FILENO;
  bool is_tidy = close_range_of(STDERR_FILENO + 1, lower - 1) && close_range_of(lower + 1, upper - 1) &&
                 close_range_of(upper + 1, INT_MAX);
  return is_tidy ? no_fault() : fault_at(STEP_DESCRIPTORS);
}

void descriptors_keep_only(int fd) {
  close_range_of(0, fd - 1);
  close_range_of(fd + 1, INT_MAX);
}
