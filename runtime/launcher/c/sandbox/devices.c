#include "sandbox/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/files.h"
#include "base/text.h"
#include "sandbox/mounts.h"

static const struct {
  const char *name;
  unsigned int major;
  unsigned int minor;
} DEVICES[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
#define DEVICE_COUNT (sizeof DEVICES / sizeof DEVICES[0])

static const struct {
  const char *name;
  const char *to;
} LINKS[] = {
  {"fd", "/proc/self/fd"},           {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
  {"stderr", "/proc/self/fd/2"},     {"ptmx", "pts/ptmx"},
};
#define LINK_COUNT (sizeof LINKS / sizeof LINKS[0])

/* Without the right to create a node: an empty file to mount the host's node on. */
static bool make_device(int dev_fd, const char *name, dev_t device, bool *is_made) {
  *is_made = mknodat(dev_fd, name, S_IFCHR | 0666, device) == 0;
  if (*is_made) return true;
  if (errno != EPERM) return false;
  return make_file(dev_fd, name);
}

/* The right to create nodes is the same for all of them. */
static bool fill(int dev_fd, bool *are_made) {
  for (size_t i = 0; i < DEVICE_COUNT; i++)
    if (!make_device(dev_fd, DEVICES[i].name, makedev(DEVICES[i].major, DEVICES[i].minor), are_made)) return false;
  for (size_t i = 0; i < LINK_COUNT; i++)
    if (symlinkat(LINKS[i].to, dev_fd, LINKS[i].name) != 0) return false;
  return mkdirat(dev_fd, "pts", 0755) == 0 && mkdirat(dev_fd, "shm", 01777) == 0;
}

bool devices_make(const char *dev, bool *are_made) {
  if (mkdir(dev, 0755) != 0) return false;
  int fd = openat(AT_FDCWD, dev, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_filled = fill(fd, are_made);
  close_keeping_errno(fd);
  return is_filled;
}

/* Without the nodev of mounts_freeze, so that the task can open it. */
static bool bind_device(const char *dev, int host_dev_fd, const char *name) {
  struct text path;
  struct stat status;
  const char *target = text_set(&path, "%s/%s", dev, name);
  int fd = openat(host_dev_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT; /* a host may lack some */
  bool is_bound = fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && bind_fd(fd, target) &&
                  remount(target, MS_NOSUID | MS_NOEXEC);
  close_keeping_errno(fd);
  return is_bound;
}

bool devices_mount(const char *dev, int host_dev_fd) {
  struct text path;
  for (size_t i = 0; i < DEVICE_COUNT && host_dev_fd != ABSENT; i++)
    if (!bind_device(dev, host_dev_fd, DEVICES[i].name)) return false;
  return mount("devpts", text_set(&path, "%s/pts", dev), "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") == 0;
}
