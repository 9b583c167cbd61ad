/* Devices and terminals. A device that we do not know is looked at and not opened: a watchdog would start by that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attempt.h"

static struct result open_memory(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDONLY);
}

static struct result open_disk(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/dev/vda", "/dev/vda1", "/dev/sda", "/dev/sda1", "/dev/nvme0n1", "/dev/xvda",
                                      "/dev/ubda", "/dev/loop0", "/dev/dm-0", "/dev/root"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDONLY);
}

static struct result open_controls(const struct baits *baits) {
  (void)baits;
  static const char *const PATHS[] = {"/dev/kvm",          "/dev/fuse",      "/dev/net/tun", "/dev/loop-control",
                                      "/dev/mapper/control", "/dev/vhost-net", "/dev/vsock", "/dev/userfaultfd",
                                      "/dev/uinput",       "/dev/btrfs-control"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDWR);
}

static bool is_harmless(const char *name) {
  static const char *const NAMES[] = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"};
  for (size_t i = 0; i < COUNT_OF(NAMES); i++)
    if (strcmp(name, NAMES[i]) == 0) return true;
  return false;
}

static struct result find_devices(const struct baits *baits) {
  (void)baits;
  DIR *dev = opendir("/dev");
  if (dev == NULL) return refused();
  struct result result = blocked("there are none");
  for (struct dirent *entry; result.verdict == BLOCKED && (entry = readdir(dev)) != NULL;) {
    struct stat status;
    if (is_harmless(entry->d_name) || fstatat(dirfd(dev), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) continue;
    if (faccessat(dirfd(dev), entry->d_name, R_OK, AT_EACCESS) != 0 &&
        faccessat(dirfd(dev), entry->d_name, W_OK, AT_EACCESS) != 0)
      continue;
    result = opened(entry->d_name);
  }
  closedir(dev);
  return result;
}

/* Who has the terminal of the one that started the service types there (TIOCSTI). Nothing is typed. */
static struct result take_terminal(const struct baits *baits) {
  (void)baits;
  for (int fd = 0; fd <= 2; fd++)
    if (isatty(fd)) return opened("it was given one");
  static const char *const PATHS[] = {"/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0"};
  return any_opens(PATHS, COUNT_OF(PATHS), O_RDWR);
}

static struct result other_terminals(const struct baits *baits) {
  (void)baits;
  for (int number = 0; number < 64; number++) {
    char path[24];
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) return opened(path);
  }
  return blocked("there are none");
}

static const struct attempt LIST[] = {
  {"device_memory", "opens the memory of the machine", open_memory, 0, false},
  {"device_disk", "opens a disk", open_disk, 0, false},
  {"device_controls", "opens devices by which the machine is run", open_controls, 0, false},
  {"devices", "looks for any device that does more than nothing", find_devices, 0, false},
  {"terminal", "opens the terminal of who started the service", take_terminal, 0, false},
  {"terminals", "looks for terminals of others", other_terminals, 0, false},
};

const struct attempts device_attempts = ATTEMPTS_OF(LIST);
