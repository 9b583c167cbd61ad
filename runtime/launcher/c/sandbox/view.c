#include "sandbox/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/files.h"
#include "base/paths.h"
#include "sandbox/devices.h"
#include "sandbox/mounts.h"

/* Covers files. In memory, where `dir` and `ground` make all the rest. */
#define EMPTY_FILE "empty-file"

/* Entries at the top of a tree; each becomes a mount. */
#define MAX_TREE_ENTRIES 256

/* What an entry takes from the host, opened before the first mount. */
struct source {
  /* ABSENT for an entry without one, and for one that is not there and need not be. */
  int fd;
  bool is_directory;
  /* Of its mount, at first. */
  unsigned long flags;
};

struct view {
  const struct mount_list *list;
  struct source sources[MAX_MOUNTS];
  bool has_own_pids;
  /* Whether `devices` made nodes, rather than files to mount those of the host on. */
  bool has_devices;
  /* Where a tree appears, or NULL; and its path on the host, without a link in it. */
  const char *tree_at;
  char tree[PATH_MAX];
};

static bool is_of_host(const char *path) { return path[0] == '/'; }

static bool is_bind(const struct mount_entry *entry) { return entry->op == OP_BIND || entry->op == OP_BIND_TRY; }

static bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

static struct fault open_bound(struct source *source, const struct mount_entry *entry) {
  struct stat status;
  source->fd = open(entry->source, O_PATH | O_CLOEXEC);
  if (source->fd < 0) return entry->op == OP_BIND_TRY && is_missing(errno) ? no_fault() : fault_at(STEP_PLACES);
  if (fstat(source->fd, &status) != 0) return fault_at(STEP_PLACES);
  source->is_directory = S_ISDIR(status.st_mode);
  if (has_word(entry->options, "keep")) source->flags = lasting_flags(source->fd);
  return no_fault();
}

static struct fault open_source(struct source *source, const struct mount_entry *entry) {
  if (is_bind(entry) && is_of_host(entry->source)) return open_bound(source, entry);
  if (entry->op == OP_TREE) source->fd = open(entry->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  else if (entry->op == OP_DEV) source->fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
  else return no_fault();
  return source->fd >= 0 ? no_fault() : fault_at(entry->step);
}

/* That of the bind of the same path. */
static const struct source *source_named(const struct view *view, const char *path) {
  static const struct source NONE = {.fd = ABSENT};
  for (int i = 0; i < view->list->count; i++) {
    const struct mount_entry *entry = &view->list->entries[i];
    if (is_bind(entry) && strcmp(entry->source, path) == 0) return &view->sources[i];
  }
  return &NONE;
}

static bool make_memory(const struct mount_entry *entry) {
  return mount("tmpfs", entry->target, "tmpfs", MS_NOSUID, entry->options) == 0 && chdir(entry->target) == 0 &&
         make_file(AT_FDCWD, EMPTY_FILE);
}

/* `path`, with all directories on the way. */
static bool make_path(const char *path, bool is_directory, mode_t mode) {
  struct text made;
  text_clear(&made);
  for (const char *at = path; *at != '\0';) {
    size_t length = strcspn(at, "/");
    if (made.length > 0) text_add(&made, "/");
    text_add_part(&made, at, length);
    at += length + strspn(at + length, "/");
    if (made.is_cut) {
      errno = ENAMETOOLONG;
      return false;
    }
    bool is_last = *at == '\0';
    bool is_made = is_last && !is_directory ? make_file(AT_FDCWD, text_string(&made))
                                            : mkdir(text_string(&made), is_last ? mode : 0755) == 0;
    if (!is_made && errno != EEXIST) return false;
  }
  return true;
}

static bool make_ground(const struct view *view, const struct mount_entry *entry) {
  const struct source *source = source_named(view, entry->source);
  return source->fd == ABSENT || make_path(entry->target, source->is_directory, 0755);
}

static bool set_flags(const struct mount_entry *entry, const struct source *source) {
  static const struct {
    const char *name;
    unsigned long flag;
  } FLAGS[] = {{"ro", MS_RDONLY}, {"nosuid", MS_NOSUID}, {"nodev", MS_NODEV}, {"noexec", MS_NOEXEC}};
  if (has_word(entry->options, "same")) return true;
  unsigned long flags = source->flags;
  for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++)
    if (has_word(entry->options, FLAGS[i].name)) flags |= FLAGS[i].flag;
  return remount(entry->target, flags) || (errno == EPERM && has_word(entry->options, "if-permitted"));
}

static bool bind_source(const struct mount_entry *entry, const struct source *source) {
  if (is_of_host(entry->source) && source->fd == ABSENT) return true;
  bool is_bound = source->fd == ABSENT ? bind_path(entry->source, entry->target) : bind_fd(source->fd, entry->target);
  if (!is_bound) return entry->op == OP_BIND_TRY && is_missing(errno);
  return set_flags(entry, source);
}

/* Where a target is. False where the tree does not have it. */
static bool place(const struct view *view, const char *target, struct text *path) {
  text_clear(path);
  if (view->tree_at == NULL || !is_of_host(target)) {
    text_add(path, target);
  } else {
    if (!is_within(target, view->tree) || is_within(view->tree, target)) return false;
    text_add(path, view->tree_at);
    text_add(path, target + (strcmp(view->tree, "/") == 0 ? 0 : strlen(view->tree)));
  }
  return !path->is_cut;
}

static bool mask(const struct view *view, const struct mount_entry *entry) {
  struct text path;
  struct stat status;
  if (!place(view, entry->target, &path)) return true;
  if (stat(text_string(&path), &status) != 0) return is_missing(errno);
  return bind_path(S_ISDIR(status.st_mode) ? entry->source : EMPTY_FILE, text_string(&path)) || is_missing(errno);
}

/* Where the host's processes are the task's as well, its /proc is of use. */
static bool mount_proc(const struct view *view, const char *target) {
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (view->has_own_pids) return mount("proc", target, "proc", flags, NULL) == 0;
  return bind_path("/proc", target) && remount(target, flags);
}

static bool find_name(struct view *view, int tree_fd) {
  struct text link;
  text_clear(&link);
  text_add(&link, "/proc/self/fd/");
  text_add_number(&link, tree_fd);
  ssize_t length = readlink(text_string(&link), view->tree, sizeof view->tree - 1);
  view->tree[length < 0 ? 0 : length] = '\0';
  return length > 0;
}

static bool is_hidden(const struct view *view) {
  bool is_masked = false;
  for (int i = 0; i < view->list->count; i++) {
    const struct mount_entry *entry = &view->list->entries[i];
    bool decides = (entry->op == OP_MASK || entry->op == OP_ALLOW) && is_of_host(entry->target);
    if (decides && is_within(view->tree, entry->target)) is_masked = entry->op == OP_MASK;
  }
  return is_masked;
}

static bool copy_link(int tree_fd, const char *name, const char *path) {
  char to[PATH_MAX];
  ssize_t length = readlinkat(tree_fd, name, to, sizeof to - 1);
  if (length < 0) return false;
  to[length] = '\0';
  return symlink(to, path) == 0;
}

/* By a descriptor: what was looked at is what is mounted. Pipes, sockets and devices have no business in a root. */
static bool add_tree_entry(int tree_fd, const char *name, const char *path) {
  struct stat status;
  int fd = openat(tree_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool is_added = fstat(fd, &status) == 0;
  if (is_added && S_ISLNK(status.st_mode)) is_added = copy_link(tree_fd, name, path);
  else if (is_added && S_ISDIR(status.st_mode)) is_added = mkdir(path, 0755) == 0 && bind_fd(fd, path);
  else if (is_added && S_ISREG(status.st_mode)) is_added = make_file(AT_FDCWD, path) && bind_fd(fd, path);
  int error = errno;
  close(fd);
  errno = error;
  return is_added;
}

static bool add_tree_entries(DIR *tree, const struct mount_entry *entry) {
  int count = 0;
  for (struct dirent *found; errno = 0, (found = readdir(tree)) != NULL;) {
    const char *name = found->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || has_word(entry->options, name)) continue;
    if (++count > MAX_TREE_ENTRIES) {
      errno = E2BIG;
      return false;
    }
    struct text path;
    text_clear(&path);
    text_add(&path, entry->target);
    text_add(&path, "/");
    text_add(&path, name);
    if (!add_tree_entry(dirfd(tree), name, text_string(&path))) return false;
  }
  return errno == 0;
}

/* Takes the descriptor of the source over. */
static bool add_tree(struct view *view, const struct mount_entry *entry, struct source *source) {
  if (!find_name(view, source->fd)) return false;
  if (is_hidden(view)) {
    errno = EACCES;
    return false;
  }
  view->tree_at = entry->target;
  DIR *tree = fdopendir(source->fd);
  if (tree == NULL) return false;
  source->fd = ABSENT;
  bool is_added = add_tree_entries(tree, entry);
  int error = errno;
  closedir(tree);
  errno = error;
  return is_added;
}

static bool pivot(const char *target) {
  return chdir(target) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0;
}

static bool apply(struct view *view, const struct mount_entry *entry, struct source *source) {
  const char *target = entry->target;
  switch (entry->op) {
    case OP_FREEZE: return mounts_freeze(target);
    case OP_TMPFS: return make_memory(entry);
    case OP_DEVICES: return devices_make(target, &view->has_devices);
    case OP_DIR: return make_path(target, true, (mode_t)strtoul(entry->options, NULL, 8));
    case OP_GROUND: return make_ground(view, entry);
    case OP_REMOUNT: return set_flags(entry, source);
    case OP_BIND:
    case OP_BIND_TRY: return bind_source(entry, source);
    case OP_MASK: return mask(view, entry);
    case OP_ALLOW: return true;
    case OP_DEV: return bind_path(entry->source, target) && devices_mount(target, view->has_devices ? ABSENT : source->fd);
    case OP_PROC: return mount_proc(view, target);
    case OP_TREE: return add_tree(view, entry, source);
    case OP_PIVOT: return pivot(target);
  }
  return false;
}

static struct fault build(struct view *view) {
  const struct mount_list *list = view->list;
  for (int i = 0; i < list->count; i++) {
    struct fault fault = open_source(&view->sources[i], &list->entries[i]);
    fault.mount = i + 1;
    if (is_fault(fault)) return fault;
  }
  for (int i = 0; i < list->count; i++) {
    struct fault fault = {.step = list->entries[i].step, .mount = i + 1};
    if (apply(view, &list->entries[i], &view->sources[i])) continue;
    fault.error = errno;
    return fault;
  }
  return chdir("/") == 0 ? no_fault() : fault_at(STEP_SCAFFOLD);
}

struct fault view_build(const struct mount_list *list, bool has_own_pids) {
  if (!mounts_make_private()) return fault_at(STEP_PROPAGATION);
  struct view view; /* long, so only what is needed of it is set */
  view.list = list;
  view.has_own_pids = has_own_pids;
  view.has_devices = false;
  view.tree_at = NULL;
  for (int i = 0; i < list->count; i++) view.sources[i] = (struct source){.fd = ABSENT};
  struct fault fault = build(&view);
  for (int i = 0; i < list->count; i++)
    if (view.sources[i].fd != ABSENT) close(view.sources[i].fd);
  return fault;
}
