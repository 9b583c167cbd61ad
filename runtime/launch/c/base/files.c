#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void close_keeping_errno(int fd) {
  int error = errno;
  close(fd);
  errno = error;
}

bool write_all(int fd, const char *bytes, size_t length, off_t at) {
  while (length > 0) {
    ssize_t written = at == AT_END ? write(fd, bytes, length) : pwrite(fd, bytes, length, at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    length -= (size_t)written;
    if (at != AT_END) at += written;
  }
  return true;
}

bool read_small_file(int dir_fd, const char *path, char *buffer, size_t size) {
  int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t length = 0;
  ssize_t got;
  do {
    got = read(fd, buffer + length, size - 1 - length);
    if (got > 0) length += (size_t)got;
  } while (got > 0 || (got < 0 && errno == EINTR));
  close_keeping_errno(fd);
  buffer[length] = '\0';
  return got == 0;
}

bool write_file(int dir_fd, const char *path, const char *content) {
  int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_written = write_all(fd, content, strlen(content), AT_END);
  close_keeping_errno(fd);
  return is_written;
}

bool make_file(const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  return fd >= 0 && close(fd) == 0;
}
