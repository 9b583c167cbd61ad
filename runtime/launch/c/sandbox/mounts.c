#include "sandbox/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/text.h"

/* struct mount_attr of <linux/mount.h>, which conflicts with <sys/mount.h>. */
struct attributes {
  unsigned long long set;
  unsigned long long clear;
  unsigned long long propagation;
  unsigned long long user_namespace;
};
#define ATTRIBUTE_READ_ONLY 0x1
#define ATTRIBUTE_NO_SET_ID 0x2
#define ATTRIBUTE_NO_DEVICES 0x4
#define RECURSIVE 0x8000

bool mounts_make_private(void) { return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0; }

bool bind_path(const char *source, const char *target) {
  return mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0;
}

bool bind_fd(int fd, const char *target) {
  struct text source;
  return bind_path(text_set(&source, "/proc/self/fd/%d", fd), target);
}

bool remount(const char *path, unsigned long flags) {
  return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | flags, NULL) == 0;
}

unsigned long lasting_flags(int fd) {
  struct statvfs status;
  if (fstatvfs(fd, &status) != 0) return 0;
  /* The ST_ flags have the same values as the MS_ flags. */
  return status.f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

/* Terminates a field of mountinfo and decodes its octal escapes, in place. Moves `at` past it and returns the field. */
static char *take_field(char **at) {
  char *field = *at, *to = field, *from = field;
  for (; *from != '\0' && *from != ' ' && *from != '\n'; to++) {
    bool is_octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] != '\0' && from[3] != '\0';
    int octal = is_octal ? (from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0' : 0;
    *to = is_octal ? (char)(unsigned char)octal : *from;
    from += is_octal ? 4 : 1;
  }
  *at = *from == '\0' ? from : from + 1;
  *to = '\0';
  return field;
}

/* `id parent major:minor root mount-point options ...` */
static bool freeze_line(char *line, const char *top) {
  for (int skipped = 0; skipped < 4; skipped++) take_field(&line);
  const char *path = take_field(&line);
  const char *options = take_field(&line);
  if (!is_within(path, top)) return true;
  unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | (has_word(options, "noexec") ? MS_NOEXEC : 0);
  /* A mount that another one covers is unreachable, for the task too. */
  return remount(path, flags) || errno == ENOENT || errno == EACCES || errno == EINVAL;
}

static bool freeze_one_by_one(const char *path) {
  char top[4096];
  if (realpath(path, top) == NULL) return false;
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  if (mounts == NULL) return false;
  char *line = NULL;
  size_t size = 0;
  bool is_frozen = true;
  while (is_frozen && getline(&line, &size, mounts) > 0) is_frozen = freeze_line(line, top);
  int error = errno;
  free(line);
  fclose(mounts);
  errno = error;
  return is_frozen;
}

bool mounts_freeze(const char *path) {
  struct attributes attributes = {.set = ATTRIBUTE_READ_ONLY | ATTRIBUTE_NO_SET_ID | ATTRIBUTE_NO_DEVICES};
  if (syscall(SYS_mount_setattr, AT_FDCWD, path, RECURSIVE, &attributes, sizeof attributes) == 0) return true;
  if (errno != ENOSYS && errno != EPERM) return false;
  return freeze_one_by_one(path);
}
