#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool write_all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}

bool write_at(int fd, const char *bytes, size_t length, off_t at) {
  while (length > 0) {
    ssize_t written = pwrite(fd, bytes, length, at);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes += written;
    length -= (size_t)written;
    at += written;
  }
  return true;
}

ssize_t read_small_file(int dir_fd, const char *path, char *buffer, size_t size) {
  int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t length = 0;
  while (length < size - 1) {
    ssize_t got = read(fd, buffer + length, size - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      int error = got < 0 ? errno : 0;
      close(fd);
      buffer[length] = '\0';
      errno = error;
      return got < 0 ? -1 : (ssize_t)length;
    }
    length += (size_t)got;
  }
  close(fd);
  buffer[length] = '\0';
  return (ssize_t)length;
}

bool write_file(int dir_fd, const char *path, const char *content) {
  int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_written = write_all(fd, content, strlen(content));
  int error = errno;
  close(fd);
  errno = error;
  return is_written;
}

bool make_file(int dir_fd, const char *path) {
  int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  return fd >= 0 && close(fd) == 0;
}
