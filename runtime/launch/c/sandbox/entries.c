#include "sandbox/entries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "sandbox/mounts.h"

/* Each entry becomes a mount. */
#define MAX_ENTRIES 256

static bool copy_symlink(int dir_fd, const char *name, const char *path) {
  char to[PATH_MAX];
  ssize_t length = readlinkat(dir_fd, name, to, sizeof to - 1);
  if (length < 0) return false;
  to[length] = '\0';
  return symlink(to, path) == 0;
}

/* Through a descriptor, so that nobody swaps the entry after fstat. Pipes, sockets and devices are left out. */
static bool bind_entry(int dir_fd, const char *name, const char *path) {
  struct stat status;
  int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_bound = fstat(fd, &status) == 0;
  if (is_bound && S_ISLNK(status.st_mode)) is_bound = copy_symlink(dir_fd, name, path);
  else if (is_bound && S_ISDIR(status.st_mode)) is_bound = mkdir(path, 0755) == 0 && bind_fd(fd, path);
  else if (is_bound && S_ISREG(status.st_mode)) is_bound = make_file(path) && bind_fd(fd, path);
  close_keeping_errno(fd);
  return is_bound;
}

static bool bind_each(DIR *directory, const char *target, const char *except) {
  int count = 0;
  for (struct dirent *found; errno = 0, (found = readdir(directory)) != NULL;) {
    const char *name = found->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || has_word(except, name)) continue;
    if (++count > MAX_ENTRIES) {
      errno = E2BIG;
      return false;
    }
    struct text path;
    if (!bind_entry(dirfd(directory), name, text_set(&path, "%s/%s", target, name))) return false;
  }
  return errno == 0;
}

bool entries_bind(int fd, const char *target, const char *except) {
  int copy = dup(fd);
  DIR *directory = copy < 0 ? NULL : fdopendir(copy);
  if (directory == NULL) return false;
  bool is_bound = bind_each(directory, target, except);
  int error = errno;
  closedir(directory);
  errno = error;
  return is_bound;
}
