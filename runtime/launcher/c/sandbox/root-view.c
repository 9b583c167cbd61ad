#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/paths.h"
#include "base/text.h"
#include "sandbox/devices.h"
#include "sandbox/mounts.h"
#include "sandbox/view.h"

/* Entries at the top of a tree; each becomes a mount. */
#define MAX_ENTRIES 256

/* What the root has of us, whatever the tree has under these names: the first name of `path` is one of them. */
static bool is_ours(const char *path, bool has_script) {
  static const char *const OURS[] = {".", "..", "dev", "proc", "tmp", ROOT_WORKSPACE};
  for (size_t i = 0; i < sizeof OURS / sizeof OURS[0]; i++)
    if (is_within(path, OURS[i])) return true;
  return has_script && is_within(path, ROOT_SCRIPT);
}

static bool copy_link(int tree_fd, const char *name) {
  char to[PATH_MAX];
  ssize_t length = readlinkat(tree_fd, name, to, sizeof to - 1);
  if (length < 0) return false;
  to[length] = '\0';
  return symlink(to, name) == 0;
}

/* By a descriptor: what was looked at is what is mounted. Pipes, sockets and devices have no business there. */
static bool add_entry(int tree_fd, const char *name) {
  struct stat status;
  int fd = openat(tree_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status) != 0) return false;
  bool is_added = true;
  if (S_ISLNK(status.st_mode)) is_added = copy_link(tree_fd, name);
  else if (S_ISDIR(status.st_mode)) is_added = mkdir(name, 0755) == 0 && bind_fd(fd, name);
  else if (S_ISREG(status.st_mode)) is_added = make_file(AT_FDCWD, name) && bind_fd(fd, name);
  int error = errno;
  close(fd);
  errno = error;
  return is_added;
}

/* Takes the descriptor over. */
static bool add_entries(int tree_fd, bool has_script) {
  DIR *tree = fdopendir(tree_fd);
  if (tree == NULL) return false;
  int count = 0;
  bool is_added = true;
  for (struct dirent *entry; is_added && (entry = readdir(tree)) != NULL;) {
    if (is_ours(entry->d_name, has_script)) continue;
    if (++count > MAX_ENTRIES) {
      errno = E2BIG;
      is_added = false;
    } else {
      is_added = add_entry(tree_fd, entry->d_name);
    }
  }
  int error = errno;
  closedir(tree);
  errno = error;
  return is_added;
}

/* What covers hidden places, where the mount of /proc covers it. */
#define COVER "proc/cover"
#define COVER_FILE "proc/file"

static bool make_places(bool has_script) {
  bool is_made = mkdir("proc", 0755) == 0 && mkdir("tmp", 01777) == 0 && mkdir(ROOT_WORKSPACE, 0755) == 0;
  return is_made && mkdir(COVER, 0755) == 0 && make_file(AT_FDCWD, COVER_FILE) &&
         (!has_script || make_file(AT_FDCWD, ROOT_SCRIPT));
}

/* The name of the tree on the host, with no link in it. */
static bool real_path(int fd, char *path, size_t size) {
  struct text link;
  text_clear(&link);
  text_add(&link, "/proc/self/fd/");
  text_add_number(&link, fd);
  ssize_t length = readlink(text_string(&link), path, size - 1);
  path[length < 0 ? 0 : length] = '\0';
  return length > 0;
}

static bool is_shown(const struct arguments *arguments, const char *tree, const char *mask) {
  for (int i = 0; i < arguments->sandbox_exposed.count; i++) {
    const char *exposed = arguments->sandbox_exposed.paths[i];
    if (is_within(tree, exposed) && is_within(exposed, mask)) return true;
  }
  return false;
}

/* What covers hidden places, where its names are covered by then. */
struct covers {
  int directory_fd;
  int file_fd;
};

static bool covers_open(struct covers *covers) {
  covers->directory_fd = open(COVER, O_PATH | O_CLOEXEC);
  covers->file_fd = open(COVER_FILE, O_PATH | O_CLOEXEC);
  return covers->directory_fd >= 0 && covers->file_fd >= 0;
}

static void covers_close(const struct covers *covers) {
  if (covers->directory_fd >= 0) close(covers->directory_fd);
  if (covers->file_fd >= 0) close(covers->file_fd);
}

static bool cover(const struct covers *covers, const char *path) {
  struct stat status;
  if (lstat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR;
  return bind_fd(S_ISDIR(status.st_mode) ? covers->directory_fd : covers->file_fd, path);
}

/* What is hidden of the host stays so in a tree that holds it; a tree that is itself hidden is no root. */
static struct fault cover_hidden(const struct arguments *arguments, const struct covers *covers, int tree_fd,
                                 bool has_script) {
  char tree[PATH_MAX];
  if (!real_path(tree_fd, tree, sizeof tree)) return fault_at(STEP_ROOTFS);
  for (int i = 0; i < arguments->sandbox_masks.count; i++) {
    const char *mask = arguments->sandbox_masks.paths[i];
    if (is_within(tree, mask) && !is_shown(arguments, tree, mask)) return (struct fault){STEP_ROOTFS, EACCES};
    if (!is_within(mask, tree) || is_within(tree, mask)) continue;
    const char *below = mask + (strcmp(tree, "/") == 0 ? 1 : strlen(tree) + 1);
    if (!is_ours(below, has_script) && !cover(covers, below)) return fault_at(STEP_MASK);
  }
  return no_fault();
}

/* The host's processes are seen where the task has no others: only then is its /proc of any use. */
static bool mount_proc(bool has_own_pids) {
  if (has_own_pids) return mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
  return bind_path("/proc", "proc") && remount("proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

/* Much is the same in every /proc. */
static struct fault cover_in_proc(const struct arguments *arguments, const struct covers *covers) {
  for (int i = 0; i < arguments->sandbox_masks.count; i++) {
    const char *mask = arguments->sandbox_masks.paths[i];
    bool is_below = is_within(mask, "/proc") && !is_within("/proc", mask);
    if (is_below && !cover(covers, mask + 1)) return fault_at(STEP_MASK);
  }
  return no_fault();
}

static bool mount_workspace(int fd) {
  return bind_fd(fd, ROOT_WORKSPACE) && remount(ROOT_WORKSPACE, lasting_flags(fd) | MS_NOSUID | MS_NODEV);
}

static bool mount_script(int fd) {
  return bind_fd(fd, ROOT_SCRIPT) && remount(ROOT_SCRIPT, lasting_flags(fd) | MS_RDONLY | MS_NOSUID | MS_NODEV);
}

/* The working directory becomes the root; nothing of the old one is left. */
static bool pivot(void) {
  return syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

/* Descriptors of what lies outside, opened while that can be seen. */
struct sources {
  int dev_fd;
  int tree_fd;
  /* The same tree, only to ask for its name. */
  int name_fd;
  int workspace_fd;
  int script_fd;
};

/* The scaffold, with all that a task sees. Takes the descriptor of the tree over. */
static struct fault fill(const struct arguments *arguments, const struct sources *sources, const struct covers *covers,
                         bool has_devices, bool has_own_pids) {
  bool has_script = sources->script_fd != ABSENT;
  if (!add_entries(sources->tree_fd, has_script)) return fault_at(STEP_ROOTFS);
  struct fault fault = cover_hidden(arguments, covers, sources->name_fd, has_script);
  if (is_fault(fault)) return fault;
  if (!mounts_freeze(".")) return fault_at(STEP_FREEZE);
  if (!bind_path("dev", "dev") || !remount("dev", MS_RDONLY | MS_NOSUID | MS_NOEXEC) ||
      !devices_mount("dev", "dev/shm", has_devices ? ABSENT : sources->dev_fd))
    return fault_at(STEP_DEVICES);
  if (!bind_path("tmp", "tmp") || !remount("tmp", MS_NOSUID | MS_NODEV)) return fault_at(STEP_TMP);
  if (sources->workspace_fd != ABSENT && !mount_workspace(sources->workspace_fd)) return fault_at(STEP_WORKSPACE);
  if (has_script && !mount_script(sources->script_fd)) return fault_at(STEP_SCRIPT);
  return mount_proc(has_own_pids) ? cover_in_proc(arguments, covers) : fault_at(STEP_PROC);
}

static struct fault build(const struct arguments *arguments, const struct sources *sources, bool has_own_pids) {
  if (mount("tmpfs", SCAFFOLD_AT, "tmpfs", MS_NOSUID, SCAFFOLD_OPTIONS) != 0 || chdir(SCAFFOLD_AT) != 0)
    return fault_at(STEP_SCAFFOLD);
  bool has_devices;
  struct covers covers;
  if (!devices_make(&has_devices)) return fault_at(STEP_DEVICES);
  if (!make_places(sources->script_fd != ABSENT) || !covers_open(&covers)) return fault_at(STEP_SCAFFOLD);
  struct fault fault = fill(arguments, sources, &covers, has_devices, has_own_pids);
  covers_close(&covers);
  if (is_fault(fault)) return fault;
  return pivot() ? no_fault() : fault_at(STEP_PIVOT);
}

static bool open_source(int *fd, const char *path) {
  *fd = path == NULL ? ABSENT : open(path, O_PATH | O_CLOEXEC);
  return path == NULL || *fd >= 0;
}

struct fault root_view_build(const struct arguments *arguments, bool has_own_pids) {
  struct sources sources;
  if (!open_source(&sources.dev_fd, "/dev") || !open_source(&sources.workspace_fd, arguments->sandbox_workspace) ||
      !open_source(&sources.script_fd, arguments->sandbox_script))
    return fault_at(STEP_PLACES);
  sources.tree_fd = open(arguments->sandbox_rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (sources.tree_fd < 0 || (sources.name_fd = dup(sources.tree_fd)) < 0) return fault_at(STEP_ROOTFS);
  struct fault fault = build(arguments, &sources, has_own_pids);
  close(sources.name_fd);
  close(sources.dev_fd);
  if (sources.workspace_fd != ABSENT) close(sources.workspace_fd);
  if (sources.script_fd != ABSENT) close(sources.script_fd);
  return fault;
}
