/* Writing where a sandbox only lets it read. What can be made is removed at once; what exists is opened, not written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "attempt.h"

#define NAME "taskmill-escape-file"

/* Bytes of the mount table that are looked at, and of the longest path in it. */
#define TABLE_BYTES 65536
#define PATH_BYTES 4096

static struct result make_in(const char *directory) {
  char path[PATH_BYTES + sizeof NAME + 1];
  snprintf(path, sizeof path, "%s/" NAME, directory);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return refused();
  close(fd);
  unlink(path);
  return opened(directory);
}

static struct result make_in_any(const char *const *directories, size_t count) {
  struct result result = blocked("there is no such directory");
  for (size_t i = 0; i < count && result.verdict == BLOCKED; i++) {
    struct result next = make_in(directories[i]);
    if (errno != ENOENT || next.verdict == OPEN) result = next;
  }
  return result;
}

static struct result make_in_system(const struct baits *baits) {
  (void)baits;
  static const char *const DIRECTORIES[] = {"/usr", "/usr/local", "/usr/local/bin", "/bin", "/lib", "/etc", "/boot"};
  return make_in_any(DIRECTORIES, COUNT_OF(DIRECTORIES));
}

/* Places that everybody may write on many machines. */
static struct result make_elsewhere(const struct baits *baits) {
  (void)baits;
  static const char *const DIRECTORIES[] = {"/",        "/var",    "/var/tmp",   "/var/lib", "/var/crash",
                                            "/var/log", "/opt",    "/srv",       "/mnt",     "/var/cache",
                                            "/media",   "/run/lock", "/var/spool/cron/crontabs"};
  struct result result = make_in_any(DIRECTORIES, COUNT_OF(DIRECTORIES));
  return result;
}

/* Its own places, by what a sandbox promises. Those of the kernel's own file systems have attempts of their own. */
static bool is_its_own(const char *mount_point, const char *workspace) {
  static const char *const OWN[] = {"/tmp", "/dev/shm", "/dev/mqueue", "/proc", "/sys", "/dev/pts"};
  if (strcmp(mount_point, workspace) == 0) return true;
  for (size_t i = 0; i < COUNT_OF(OWN); i++) {
    size_t length = strlen(OWN[i]);
    if (strncmp(mount_point, OWN[i], length) == 0 && (mount_point[length] == '\0' || mount_point[length] == '/'))
      return true;
  }
  return false;
}

/* Every mount point but its own: a mount that was forgotten when the rest was made read-only. */
static struct result make_in_mounts(const struct baits *baits) {
  (void)baits;
  static char table[TABLE_BYTES];
  char workspace[PATH_BYTES] = "";
  int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  for (ssize_t got = 1; fd >= 0 && got > 0 && length < sizeof table - 1; length += (size_t)(got > 0 ? got : 0))
    got = read(fd, table + length, sizeof table - 1 - length);
  if (length == 0 || getcwd(workspace, sizeof workspace) == NULL) return refused();
  int tried = 0;
  char *rest = table;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    char mount_point[PATH_BYTES];
    if (sscanf(line, "%*s %*s %*s %*s %4095s", mount_point) != 1 || is_its_own(mount_point, workspace)) continue;
    tried++;
    struct result result = make_in(mount_point);
    if (result.verdict == OPEN) return result;
  }
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "none of %d", tried);
  return blocked(detail);
}

static struct result open_existing(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/etc/passwd", "/etc/ld.so.cache", "/etc/hosts", "/etc/resolv.conf", "/bin/sh",
                                      "/usr/bin/env", "/bin/busybox"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_WRONLY);
}

/* Sets what is set already. */
static struct result change_owner_or_mode(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/usr", "/etc", "/etc/passwd", "/"};
  struct result result = blocked("there is no such file");
  for (size_t i = 0; i < COUNT_OF(PATHS) && result.verdict == BLOCKED; i++) {
    struct stat status;
    if (stat(PATHS[i], &status) != 0) continue;
    result = judged(chmod(PATHS[i], status.st_mode & 07777));
    if (result.verdict == BLOCKED) result = judged(chown(PATHS[i], status.st_uid, status.st_gid));
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    if (result.verdict == BLOCKED) result = judged(utimensat(AT_FDCWD, PATHS[i], times, 0));
  }
  return result;
}

static struct result move_out(const struct baits *baits) {
  (void)baits;
  static const char *const DIRECTORIES[] = {"/usr", "/etc", "/var/lib", "/"};
  int fd = open(NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  struct result result = blocked("there is no such directory");
  for (size_t i = 0; i < COUNT_OF(DIRECTORIES) && result.verdict == BLOCKED; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/" NAME, DIRECTORIES[i]);
    result = judged(rename(NAME, path));
    if (result.verdict == OPEN) unlink(path);
  }
  unlink(NAME);
  return result;
}

static const struct attempt LIST[] = {
  {"write_system", "makes a file among the programs and settings of the host", make_in_system, 0, false},
  {"write_elsewhere", "makes a file in places that hosts leave writable", make_elsewhere, 0, false},
  {"write_mounts", "makes a file in every mount but its own", make_in_mounts, 0, false},
  {"write_existing", "opens files of the system for writing", open_existing, 0, false},
  {"change_metadata", "changes mode, owner or times of the system's files", change_owner_or_mode, 0, false},
  {"move_out", "moves a file out of its workspace", move_out, 0, false},
};

const struct attempts write_attempts = ATTEMPTS_OF(LIST);
