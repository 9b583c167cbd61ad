#include "sandbox/view.h"

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
#include "sandbox/entries.h"
#include "sandbox/mounts.h"

/* Covers masked files. In the tmpfs. */
#define EMPTY_FILE "empty-file"

/* The host path that an entry needs, opened before the first mount. */
struct source {
  /* ABSENT if the entry has no such path, or if bind-try did not find it. */
  int fd;
  bool is_directory;
  /* Flags of its mount before any freeze; only with `keep`. */
  unsigned long flags;
};

struct view {
  const struct mount_list *list;
  struct source sources[MAX_MOUNTS];
  /* Target of bind-entries, NULL before; and the real path of its source. */
  const char *root;
  char rootfs[PATH_MAX];
};

static bool is_of_host(const char *path) { return path[0] == '/'; }

static bool is_bind(const struct mount_entry *entry) { return entry->op == OP_BIND || entry->op == OP_BIND_TRY; }

static bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

/* Keeps errno, which says what failed before. */
static bool is_absent(const char *path) {
  struct stat status;
  int error = errno;
  bool is_there = stat(path, &status) == 0 || !is_missing(errno);
  errno = error;
  return !is_there;
}

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
  if (entry->op != OP_BIND_ENTRIES) return no_fault();
  source->fd = open(entry->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return source->fd >= 0 ? no_fault() : fault_at(entry->step);
}

/* The source of the bind of `path`. */
static const struct source *source_named(const struct view *view, const char *path) {
  static const struct source NONE = {.fd = ABSENT};
  for (int i = 0; i < view->list->count; i++) {
    const struct mount_entry *entry = &view->list->entries[i];
    if (is_bind(entry) && strcmp(entry->source, path) == 0) return &view->sources[i];
  }
  return &NONE;
}

static bool mount_tmpfs(const struct mount_entry *entry) {
  return mount("tmpfs", entry->target, "tmpfs", MS_NOSUID, entry->options) == 0 && chdir(entry->target) == 0 &&
         make_file(EMPTY_FILE);
}

/* Creates `path` and its parents. */
static bool make_path(const char *path, bool is_directory, mode_t mode) {
  struct text made;
  text_clear(&made);
  for (const char *at = path; *at != '\0';) {
    size_t length = strcspn(at, "/");
    text_add(&made, "%s%.*s", made.length > 0 ? "/" : "", (int)length, at);
    at += length + strspn(at + length, "/");
    if (made.is_cut) {
      errno = ENAMETOOLONG;
      return false;
    }
    bool is_last = *at == '\0';
    bool is_made = is_last && !is_directory ? make_file(made.bytes)
                                            : mkdir(made.bytes, is_last ? mode : 0755) == 0;
    if (!is_made && errno != EEXIST) return false;
  }
  return true;
}

static bool make_mountpoint(const struct view *view, const struct mount_entry *entry) {
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
  if (!is_bound) return entry->op == OP_BIND_TRY && is_absent(entry->target);
  return set_flags(entry, source);
}

/* The path of a target. False if it is a host path outside the new root. */
static bool locate(const struct view *view, const char *target, struct text *path) {
  if (view->root == NULL || !is_of_host(target)) {
    text_set(path, "%s", target);
    return true;
  }
  if (!is_within(target, view->rootfs) || is_within(view->rootfs, target)) return false;
  text_set(path, "%s%s", view->root, target + (strcmp(view->rootfs, "/") == 0 ? 0 : strlen(view->rootfs)));
  return true;
}

static bool mask(const struct view *view, const struct mount_entry *entry) {
  struct text path;
  struct stat status;
  if (!locate(view, entry->target, &path)) return true;
  if (path.is_cut) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (stat(path.bytes, &status) != 0) return is_missing(errno);
  /* In /proc a target may vanish in between. */
  return bind_path(S_ISDIR(status.st_mode) ? entry->source : EMPTY_FILE, path.bytes) || is_absent(path.bytes);
}

static bool read_real_path(struct view *view, int fd) {
  struct text link;
  ssize_t length = readlink(text_set(&link, "/proc/self/fd/%d", fd), view->rootfs, sizeof view->rootfs - 1);
  view->rootfs[length < 0 ? 0 : length] = '\0';
  return length > 0;
}

/* Entries are sorted, outer targets first: the last match is the innermost. */
static bool is_rootfs_masked(const struct view *view) {
  bool is_masked = false;
  for (int i = 0; i < view->list->count; i++) {
    const struct mount_entry *entry = &view->list->entries[i];
    bool decides = (entry->op == OP_MASK || entry->op == OP_ALLOW) && is_of_host(entry->target);
    if (decides && is_within(view->rootfs, entry->target)) is_masked = entry->op == OP_MASK;
  }
  return is_masked;
}

static bool bind_entries(struct view *view, const struct mount_entry *entry, const struct source *source) {
  if (!read_real_path(view, source->fd)) return false;
  if (is_rootfs_masked(view)) {
    errno = EACCES;
    return false;
  }
  view->root = entry->target;
  return entries_bind(source->fd, entry->target, entry->options);
}

static bool pivot(const char *target) {
  return chdir(target) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0;
}

static bool apply(struct view *view, const struct mount_entry *entry, const struct source *source) {
  const char *target = entry->target;
  switch (entry->op) {
    case OP_FREEZE: return mounts_freeze(target);
    case OP_TMPFS: return mount_tmpfs(entry);
    case OP_DIR: return make_path(target, true, (mode_t)strtoul(entry->options, NULL, 8));
    case OP_MOUNTPOINT: return make_mountpoint(view, entry);
    case OP_REMOUNT: return set_flags(entry, source);
    case OP_BIND:
    case OP_BIND_TRY: return bind_source(entry, source);
    case OP_MASK: return mask(view, entry);
    case OP_ALLOW: return true;
    case OP_SYMLINK: return symlink(entry->source, target) == 0;
    case OP_DEVPTS: return mount("devpts", target, "devpts", MS_NOSUID | MS_NOEXEC, entry->options) == 0;
    case OP_PROC: return mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
    case OP_BIND_ENTRIES: return bind_entries(view, entry, source);
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

struct fault view_build(const struct mount_list *list) {
  if (!mounts_make_private()) return fault_at(STEP_PROPAGATION);
  struct view view; /* 20 KB: not worth clearing */
  view.list = list;
  view.root = NULL;
  for (int i = 0; i < list->count; i++) view.sources[i] = (struct source){.fd = ABSENT};
  struct fault fault = build(&view);
  for (int i = 0; i < list->count; i++)
    if (view.sources[i].fd != ABSENT) close(view.sources[i].fd);
  return fault;
}
