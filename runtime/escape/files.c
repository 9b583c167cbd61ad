/* What a sandbox hides, and what it only lets be read: by path, by links, by what is near the workspace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempt.h"

#define LINK "taskmill-escape-link"

static struct result read_shadow(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/etc/shadow", "/etc/gshadow", "/etc/ssh/ssh_host_ed25519_key"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDONLY);
}

static struct result read_secrets(const struct baits *baits) {
  if (baits->secrets.count == 0) return not_applicable("no file was laid out");
  return any_opens(baits->secrets.list, baits->secrets.count, O_RDONLY);
}

/* Tries `way` with each secret. */
static struct result each_secret(const struct baits *baits, struct result (*way)(const char *path)) {
  if (baits->secrets.count == 0) return not_applicable("no file was laid out");
  struct result result = blocked("");
  for (size_t i = 0; i < baits->secrets.count && result.verdict == BLOCKED; i++) result = way(baits->secrets.list[i]);
  return result;
}

static struct result by_other_root(const char *secret) {
  static const char *const ROOTS[] = {"/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd/../../../../../../..",
                                      "/proc/1/root", "../../../../../../../../../../../../../../../.."};
  for (size_t i = 0; i < COUNT_OF(ROOTS); i++) {
    if (strncmp(ROOTS[i], "/proc/1/", 8) == 0 && !has_own_init()) continue;
    char path[4096];
    snprintf(path, sizeof path, "%s%s", ROOTS[i], secret);
    struct result result = any_opens((const char *const[]){path}, 1, O_RDONLY);
    if (result.verdict == OPEN) return result;
  }
  return refused();
}

static struct result read_by_other_root(const struct baits *baits) { return each_secret(baits, by_other_root); }

static struct result by_symlink(const char *secret) {
  unlink(LINK);
  if (symlink(secret, LINK) != 0) return refused();
  struct result result = any_opens((const char *const[]){LINK}, 1, O_RDONLY);
  unlink(LINK);
  return result;
}

static struct result read_by_symlink(const struct baits *baits) { return each_secret(baits, by_symlink); }

static struct result by_hard_link(const char *path) {
  unlink(LINK);
  struct result result = judged(link(path, LINK));
  unlink(LINK);
  return result;
}

static struct result hard_link_secret(const struct baits *baits) { return each_secret(baits, by_hard_link); }

static struct result hard_link_system(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/etc/passwd", "/usr/bin/env", "/bin/busybox"};
  struct result result = blocked("there is no such file");
  for (size_t i = 0; i < COUNT_OF(PATHS) && result.verdict == BLOCKED; i++) result = by_hard_link(PATHS[i]);
  return result;
}

/* What lies beside the workspace: the records and the logs of the task. */
static struct result look_beside(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"../secret", "../request.json", "../outcome", "../lock", "../stdout.log",
                                      "../../../runtime.db"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDONLY);
}

static struct result write_beside(const struct baits *baits) {
  (void)baits;
  int fd = open("../" LINK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return refused();
  close(fd);
  struct stat inside, outside;
  bool is_same_place = stat("..", &outside) == 0 && stat(".", &inside) == 0 && outside.st_dev == inside.st_dev;
  unlink("../" LINK);
  return is_same_place ? opened("it worked") : blocked("it worked in a place that the host does not have");
}

/* Whatever was open in the service, and was not to be. Descriptors of ours close on exec, and we have none yet. */
static struct result find_descriptors(const struct baits *baits) {
  (void)baits;
  for (int fd = 0; fd < 4096; fd++) {
    struct stat status;
    if (fstat(fd, &status) != 0) continue;
    int flags = fcntl(fd, F_GETFD);
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "descriptor %d", fd);
    if (S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)) return opened(detail);
    if (fd > 2 && (flags & FD_CLOEXEC) == 0) return opened(detail);
  }
  return blocked("there are none but 0, 1 and 2");
}

/* Who opens a file with a lease waits for its holder, which is told and may take its time. */
static struct result lease_output(const struct baits *baits) {
  (void)baits;
  struct result result = blocked("");
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && result.verdict == BLOCKED; fd++) {
    result = judged(fcntl(fd, F_SETLEASE, F_WRLCK));
    if (result.verdict == OPEN) fcntl(fd, F_SETLEASE, F_UNLCK);
  }
  return result;
}

static const struct attempt LIST[] = {
  {"read_shadow", "opens the passwords and keys of the host", read_shadow, 0, false},
  {"read_hidden", "opens files in hidden directories", read_secrets, 0, false},
  {"read_hidden_by_root", "opens them by other names of the root, and by dots", read_by_other_root, 0, false},
  {"read_hidden_by_symlink", "opens them by a symbolic link", read_by_symlink, 0, false},
  {"link_hidden", "takes them with a hard link", hard_link_secret, 0, false},
  {"link_system", "takes files of the system with a hard link", hard_link_system, 0, false},
  {"read_beside", "opens what lies beside its workspace", look_beside, 0, false},
  {"write_beside", "makes a file beside its workspace", write_beside, 0, false},
  {"descriptors", "looks for descriptors that were left open", find_descriptors, 0, false},
  {"lease_output", "takes a lease on its own output, which holds up who reads it", lease_output, 0, false},
};

const struct attempts file_attempts = ATTEMPTS_OF(LIST);
