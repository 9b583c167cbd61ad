#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_given(const int *given, int fd) {
  for (int i = 0; i < GIVEN_COUNT; i++)
    if (given[i] == fd) return true;
  return false;
}

/* For kernels before 5.9, and filters that do not know the call. */
static bool close_one_by_one(const int *given, int first) {
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) return false;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    int fd = atoi(entry->d_name);
    if (fd >= first && entry->d_name[0] != '.' && fd != dirfd(directory) && !is_given(given, fd)) close(fd);
  }
  closedir(directory);
  return true;
}

static void sort(int *given) {
  for (int i = 1; i < GIVEN_COUNT; i++)
    for (int j = i; j > 0 && given[j - 1] > given[j]; j--) {
      int larger = given[j - 1];
      given[j - 1] = given[j];
      given[j] = larger;
    }
}

/* Closes the gaps between those that were given. */
static bool close_others(int *given) {
  sort(given);
  unsigned int first = STDERR_FILENO + 1;
  for (int i = 0; i < GIVEN_COUNT; i++) {
    if (given[i] < (int)first) continue;
    if ((unsigned int)given[i] > first && syscall(SYS_close_range, first, (unsigned int)given[i] - 1, 0) != 0)
      return close_one_by_one(given, STDERR_FILENO + 1);
    first = (unsigned int)given[i] + 1;
  }
  return syscall(SYS_close_range, first, UINT_MAX, 0) == 0 || close_one_by_one(given, STDERR_FILENO + 1);
}

struct fault descriptors_tidy(const int given[GIVEN_COUNT], int shared_fd) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return fault_at(STEP_DESCRIPTORS);

  for (int i = 0; i < GIVEN_COUNT; i++)
    if (given[i] != ABSENT && fcntl(given[i], F_SETFD, FD_CLOEXEC) != 0) return fault_at(STEP_DESCRIPTORS);
  /* It must never hold us up. */
  int flags = shared_fd == ABSENT ? O_NONBLOCK : fcntl(shared_fd, F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) fcntl(shared_fd, F_SETFL, flags | O_NONBLOCK);
  int kept[GIVEN_COUNT];
  memcpy(kept, given, sizeof kept);
  return close_others(kept) ? no_fault() : fault_at(STEP_DESCRIPTORS);
}

void descriptors_keep_only(int fd) {
  const int kept[GIVEN_COUNT] = {fd, fd};
  unsigned int number = (unsigned int)fd;
  bool is_closed = (fd == 0 || syscall(SYS_close_range, 0, number - 1, 0) == 0) &&
                   syscall(SYS_close_range, number + 1, UINT_MAX, 0) == 0;
  if (!is_closed) close_one_by_one(kept, 0);
}
