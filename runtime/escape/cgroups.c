/* The control groups that hold the sandbox: leaving them, and changing their limits. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempt.h"

int unshare(int flags);
#define CLONE_NEWNS 0x00020000

#define PLACE "taskmill-escape-cgroup"

/* Directories that a walk opens at a time, and files that it looks at. */
#define WALK_DESCRIPTORS 16
#define WALK_FILES 20000

static struct result mount_groups(const char *type, const char *options) {
  if (unshare(CLONE_NEWNS) == 0) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  mkdir(PLACE, 0700);
  struct result result = judged(mount("cgroup", PLACE, type, MS_NOSUID | MS_NODEV | MS_NOEXEC, options));
  if (result.verdict == OPEN) {
    int fd = open(PLACE "/cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) result = opened("it worked, and cgroup.procs can be written");
    if (fd >= 0) close(fd);
    umount2(PLACE, MNT_DETACH);
  }
  rmdir(PLACE);
  return result;
}

static struct result mount_v2(const struct baits *baits) {
  (void)baits;
  return mount_groups("cgroup2", NULL);
}

static struct result mount_v1(const struct baits *baits) {
  (void)baits;
  static const char *const CONTROLLERS[] = {"pids", "memory", "devices"};
  struct result result = blocked("no controller");
  for (size_t i = 0; i < COUNT_OF(CONTROLLERS) && result.verdict == BLOCKED; i++)
    result = mount_groups("cgroup", CONTROLLERS[i]);
  return result;
}

/* What the walk looks for, and what it found. A walk takes no argument. */
static const char *const *wanted;
static size_t wanted_count;
static int files_left;
static char found[DETAIL_BYTES];

static int look_at(const char *path, const struct stat *status, int type, struct FTW *position) {
  (void)status;
  if (--files_left < 0) return 1;
  if (type != FTW_F) return 0;
  for (size_t i = 0; i < wanted_count; i++) {
    if (strcmp(path + position->base, wanted[i]) != 0) continue;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) continue;
    close(fd);
    snprintf(found, sizeof found, "%s", path);
    return 1;
  }
  return 0;
}

static struct result writable_group_file(const char *const *names, size_t count) {
  wanted = names;
  wanted_count = count;
  files_left = WALK_FILES;
  nftw("/sys/fs/cgroup", look_at, WALK_DESCRIPTORS, FTW_PHYS);
  return found[0] != '\0' ? opened(found) : blocked("none can be opened for writing");
}

static struct result leave_group(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"cgroup.procs", "tasks", "cgroup.threads"};
  return writable_group_file(NAMES, COUNT_OF(NAMES));
}

static struct result change_limits(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"memory.max", "memory.limit_in_bytes", "pids.max", "cgroup.subtree_control",
                                      "cgroup.kill", "cgroup.freeze"};
  return writable_group_file(NAMES, COUNT_OF(NAMES));
}

static struct result release_agent(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"release_agent", "notify_on_release"};
  return writable_group_file(NAMES, COUNT_OF(NAMES));
}

static struct result make_group(const struct baits *baits) {
  (void)baits;
  static const char *const PARENTS[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids",
                                        "/sys/fs/cgroup/unified"};
  struct result result = blocked("there is no such directory");
  for (size_t i = 0; i < COUNT_OF(PARENTS) && result.verdict == BLOCKED; i++) {
    char path[96];
    snprintf(path, sizeof path, "%s/" PLACE, PARENTS[i]);
    if (mkdir(path, 0700) == 0) {
      rmdir(path);
      result = opened(path);
    } else if (errno != ENOENT) {
      result = refused();
    }
  }
  return result;
}

static const struct attempt LIST[] = {
  {"mount_cgroup_v2", "mounts the control groups, to leave its own", mount_v2, 0, false},
  {"mount_cgroup_v1", "mounts those of a controller", mount_v1, 0, false},
  {"cgroup_leave", "opens the file by which it would leave its group", leave_group, 0, false},
  {"cgroup_limits", "opens a file by which it would change limits", change_limits, 0, false},
  {"cgroup_release_agent", "opens the file that has the kernel start a program", release_agent, 0, false},
  {"cgroup_make", "makes a control group", make_group, 0, false},
};

const struct attempts cgroup_attempts = ATTEMPTS_OF(LIST);
