#include "base/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"

#define CHUNK_BYTES 4096

bool for_each_pid(int dir_fd, const char *path, pid_visitor *visit, void *context) {
  int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char chunk[CHUNK_BYTES];
  pid_t pid = 0;
  ssize_t got;
  while ((got = read(fd, chunk, sizeof chunk)) > 0 || (got < 0 && errno == EINTR)) {
    for (ssize_t i = 0; i < got; i++) {
      bool is_digit = chunk[i] >= '0' && chunk[i] <= '9';
      if (is_digit) pid = pid * 10 + (chunk[i] - '0');
      /* 0 is a process of another pid namespace; to kill() it means our own process group. */
      if (is_digit || pid == 0) continue;
      visit(pid, context);
      pid = 0;
    }
  }
  if (pid != 0) visit(pid, context);
  close_keeping_errno(fd);
  return got == 0;
}
