/* What a mount namespace shows and hides, and the ways to change that: mounts, roots, device nodes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attempt.h"

/* <sys/mount.h> has the same names as <linux/mount.h>, which has the newer calls. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);
int unshare(int flags);
#define MNT_DETACH 2
#define CLONE_NEWNS 0x00020000

#define PLACE "taskmill-escape-mount"

/* Where mounts are allowed they are made out of everybody's sight: a namespace of our own, if there can be one. */
static void step_aside(void) {
  if (unshare(CLONE_NEWNS) == 0) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  mkdir(PLACE, 0700);
}

/* Takes back what step_aside and a mount on its place did. */
static struct result step_back(struct result result) {
  if (result.verdict == OPEN) umount2(PLACE, MNT_DETACH);
  rmdir(PLACE);
  return result;
}

static struct result mount_of(const char *source, const char *type, unsigned long flags) {
  step_aside();
  return step_back(judged(mount(source, PLACE, type, flags, NULL)));
}

static struct result mount_tmpfs(const struct baits *baits) {
  (void)baits;
  return mount_of("tmpfs", "tmpfs", MS_NOSUID | MS_NODEV);
}

static struct result mount_proc(const struct baits *baits) {
  (void)baits;
  return mount_of("proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

static struct result mount_sysfs(const struct baits *baits) {
  (void)baits;
  return mount_of("sysfs", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

static struct result mount_bind(const struct baits *baits) {
  (void)baits;
  return mount_of("/", NULL, MS_BIND | MS_REC);
}

static struct result mount_overlay(const struct baits *baits) {
  (void)baits;
  step_aside();
  return step_back(judged(mount("overlay", PLACE, "overlay", MS_RDONLY, "lowerdir=/usr:/etc")));
}

static struct result mount_by_descriptor(const struct baits *baits) {
  (void)baits;
  int fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
  return judged(fd);
}

static struct result clone_tree(const struct baits *baits) {
  (void)baits;
  return judged(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

static struct result propagate(const struct baits *baits) {
  (void)baits;
  step_aside();
  return step_back(judged(mount(NULL, "/", NULL, MS_SHARED, NULL)));
}

/* Mount points that a sandbox has where it hides or protects something. */
static const char *const PROTECTED[] = {"/", "/usr", "/etc", "/proc", "/sys", "/dev"};

static struct result remount_writable(const struct baits *baits) {
  (void)baits;
  step_aside();
  struct result result = blocked("nothing to remount");
  for (size_t i = 0; i < COUNT_OF(PROTECTED) && result.verdict == BLOCKED; i++)
    result = judged(mount(NULL, PROTECTED[i], NULL, MS_REMOUNT | MS_BIND, NULL));
  return step_back(result);
}

static struct result set_attributes(const struct baits *baits) {
  (void)baits;
  step_aside();
  struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
  struct result result = blocked("nothing to change");
  for (size_t i = 0; i < COUNT_OF(PROTECTED) && result.verdict == BLOCKED; i++)
    result = judged(syscall(SYS_mount_setattr, AT_FDCWD, PROTECTED[i], 0, &attributes, sizeof attributes));
  return step_back(result);
}

static const char *const HIDING[] = {"/run", "/home", "/root", "/var/tmp", "/proc", "/dev/shm", "/tmp"};

static struct result unmount(const struct baits *baits) {
  (void)baits;
  step_aside();
  struct result result = blocked("nothing to unmount");
  for (size_t i = 0; i < COUNT_OF(HIDING) && result.verdict == BLOCKED; i++)
    result = judged(umount2(HIDING[i], MNT_DETACH));
  return step_back(result);
}

static struct result pivot(const struct baits *baits) {
  (void)baits;
  step_aside();
  /* Not a mount point, so that it cannot succeed: who may do it is told something else than EPERM. */
  struct result result = judged(syscall(SYS_pivot_root, PLACE, PLACE));
  bool is_allowed = result.verdict == BLOCKED && (errno == EINVAL || errno == EBUSY);
  return step_back(is_allowed ? opened("it would be allowed") : result);
}

static struct result chroot_twice(const struct baits *baits) {
  (void)baits;
  mkdir(PLACE, 0700);
  int outside = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct result result = judged(chroot(PLACE));
  if (result.verdict == OPEN && fchdir(outside) == 0) {
    for (int up = 0; up < 64; up++)
      if (chdir("..") != 0) break;
    if (chroot(".") == 0) result = opened("it stands at the top of what there is");
  }
  unlinkat(outside, PLACE, AT_REMOVEDIR);
  return result;
}

static struct result make_node(mode_t type, dev_t device) {
  struct result result = judged(mknod(PLACE, type | 0600, device));
  if (result.verdict == OPEN) unlink(PLACE);
  return result;
}

static struct result make_character_device(const struct baits *baits) {
  (void)baits;
  return make_node(S_IFCHR, makedev(1, 1)); /* the memory of the machine */
}

static struct result make_block_device(const struct baits *baits) {
  (void)baits;
  return make_node(S_IFBLK, makedev(8, 0)); /* its first disk */
}

/* By its number instead of its path, past everything that is mounted over it: "shocker". */
static struct result open_by_handle(const struct baits *baits) {
  (void)baits;
  static struct {
    unsigned int bytes;
    int type;
    unsigned char id[MAX_HANDLE_SZ];
  } file = {.bytes = MAX_HANDLE_SZ}; /* struct file_handle, with room in it */
  struct file_handle *handle = (struct file_handle *)&file;
  int mount_id;
  int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (name_to_handle_at(directory, "", handle, &mount_id, AT_EMPTY_PATH) != 0) {
    if (errno == EOPNOTSUPP) return not_applicable("the file system of the workspace has no handles");
    return refused();
  }
  return judged(open_by_handle_at(directory, handle, O_RDONLY | O_CLOEXEC));
}

static const struct attempt LIST[] = {
  {"chroot_twice", "changes its root, to leave both roots", chroot_twice, 0, false},
  {"pivot_root", "swaps its root", pivot, 0, false},
  {"mount_tmpfs", "mounts a tmpfs", mount_tmpfs, 0, false},
  {"mount_proc", "mounts a /proc of its own, with nothing hidden", mount_proc, 0, false},
  {"mount_sysfs", "mounts a /sys of its own", mount_sysfs, 0, false},
  {"mount_bind", "shows a directory in a second place", mount_bind, 0, false},
  {"mount_overlay", "lays a directory over another", mount_overlay, 0, false},
  {"mount_by_descriptor", "opens a file system with fsopen", mount_by_descriptor, 0, false},
  {"mount_clone", "copies mounts with open_tree", clone_tree, 0, false},
  {"mount_propagation", "lets its mounts show on the host", propagate, 0, false},
  {"remount_writable", "makes read-only mounts writable", remount_writable, 0, false},
  {"mount_attributes", "makes them writable with mount_setattr", set_attributes, 0, false},
  {"unmount", "takes away what hides a directory", unmount, 0, false},
  {"mknod_character", "makes a node of the memory device", make_character_device, 0, false},
  {"mknod_block", "makes a node of a disk", make_block_device, 0, false},
  {"open_by_handle", "opens files by their number, past all mounts", open_by_handle, 0, false},
};

const struct attempts mount_attempts = ATTEMPTS_OF(LIST);
