#include "attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct result result_of(enum verdict verdict, const char *detail) {
  struct result result = {.verdict = verdict};
  snprintf(result.detail, sizeof result.detail, "%s", detail);
  return result;
}

struct result blocked(const char *how) { return result_of(BLOCKED, how); }

struct result refused(void) { return blocked(strerror(errno)); }

struct result opened(const char *how) { return result_of(OPEN, how); }

struct result not_applicable(const char *why) { return result_of(NOT_APPLICABLE, why); }

struct result judged(long given) { return given < 0 ? refused() : opened("it worked"); }

struct result any_opens(const char *const *paths, size_t count, int flags) {
  int error = ENOENT;
  for (size_t i = 0; i < count; i++) {
    int fd = open(paths[i], flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
      close(fd);
      return opened(paths[i]);
    }
    if (errno != ENOENT) error = errno;
  }
  errno = error;
  return refused();
}

/* The inode that every kernel gives the pid namespace that it starts with. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

bool has_own_init(void) {
  char target[64] = "";
  return readlink("/proc/self/ns/pid", target, sizeof target - 1) > 0 && strcmp(target, FIRST_PID_NAMESPACE) != 0;
}
