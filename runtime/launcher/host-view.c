#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devices.h"
#include "files.h"
#include "mounts.h"
#include "places.h"
#include "text.h"
#include "view.h"

/* What covers a file. */
#define EMPTY_FILE "empty"

/* The name of what covers a place, in the scaffold. */
static const char *cover_of(struct text *name, int place) {
  text_clear(name);
  text_add(name, "cover-");
  text_add_number(name, place);
  return text_string(name);
}

/* `path` below `top`, with all directories on the way. */
static bool make_ground(const char *top, const char *path, bool is_directory) {
  struct text made;
  text_clear(&made);
  text_add(&made, top);
  for (const char *at = path; *at != '\0';) {
    size_t length = strcspn(at, "/");
    text_add(&made, "/");
    text_add_part(&made, at, length);
    at += length + strspn(at + length, "/");
    if (made.is_cut) {
      errno = ENAMETOOLONG;
      return false;
    }
    bool is_last = *at == '\0';
    bool is_made = is_last && !is_directory ? make_file(AT_FDCWD, text_string(&made)) : mkdir(text_string(&made), 0755) == 0;
    if (!is_made && errno != EEXIST) return false;
  }
  return true;
}

/* What covers the places, with the ground for what lies in them. */
static bool make_covers(const struct places *places) {
  struct text name;
  if (!make_file(AT_FDCWD, EMPTY_FILE)) return false;
  for (int i = 0; i < places->count; i++) {
    const struct place *place = &places->all[i];
    if (place->kind == PLACE_MASK && place->is_directory && mkdir(cover_of(&name, i), 0755) != 0) return false;
    if (place->within == ABSENT || places->all[place->within].kind != PLACE_MASK) continue;
    const char *rest = path_within(place, &places->all[place->within]);
    if (!make_ground(cover_of(&name, place->within), rest, place->is_directory)) return false;
  }
  return true;
}

static struct fault build_scaffold(const struct places *places, bool *has_devices) {
  if (mount("tmpfs", SCAFFOLD_AT, "tmpfs", MS_NOSUID, SCAFFOLD_OPTIONS) != 0 || chdir(SCAFFOLD_AT) != 0)
    return fault_at(STEP_SCAFFOLD);
  if (!devices_make(has_devices)) return fault_at(STEP_DEVICES);
  if (mkdir("tmp", 01777) != 0 || mkdir("shm", 01777) != 0 || !make_covers(places)) return fault_at(STEP_SCAFFOLD);
  /* Whatever is bound from it is read-only, too. */
  return remount(".", MS_RDONLY | MS_NOSUID | MS_NOEXEC) ? no_fault() : fault_at(STEP_SCAFFOLD);
}

static struct fault show(const struct place *place, enum step step, unsigned long flags) {
  if (!bind_fd(place->fd, place->path)) return fault_at(step);
  if (place->kind == PLACE_WORKSPACE && !remount(place->path, flags | MS_NOSUID | MS_NODEV)) return fault_at(step);
  return no_fault();
}

static struct fault mount_place(const struct places *places, int index, unsigned long workspace_flags) {
  const struct place *place = &places->all[index];
  const struct place *outer = place->within == ABSENT ? NULL : &places->all[place->within];
  struct text name;
  static const enum step STEP_OF_KIND[] = {
    [PLACE_MASK] = STEP_MASK,           [PLACE_TMP] = STEP_TMP,       [PLACE_EXPOSED] = STEP_EXPOSE,
    [PLACE_WORKSPACE] = STEP_WORKSPACE, [PLACE_SCRIPT] = STEP_SCRIPT,
  };
  enum step step = STEP_OF_KIND[place->kind];
  if (outer != NULL && outer->kind == PLACE_TMP &&
      !make_ground(outer->path, path_within(place, outer), place->is_directory))
    return fault_at(step);
  if (place->kind > PLACE_TMP) return show(place, step, workspace_flags);
  bool is_covered;
  if (place->kind == PLACE_MASK)
    is_covered = bind_path(place->is_directory ? cover_of(&name, index) : EMPTY_FILE, place->path);
  else
    is_covered = bind_path("tmp", place->path) && remount(place->path, MS_NOSUID | MS_NODEV);
  return is_covered ? no_fault() : fault_at(step);
}

/* The /proc of the host is as it was, but for other users' entries of no use to anybody. */
static bool mount_proc(bool has_own_pids) {
  if (has_own_pids) return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
  return remount("/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

static unsigned long flags_of_workspace(const struct places *places) {
  for (int i = 0; i < places->count; i++)
    if (places->all[i].kind == PLACE_WORKSPACE) return lasting_flags(places->all[i].fd);
  return 0;
}

static struct fault build(const struct places *places, int dev_fd, bool has_own_pids) {
  unsigned long workspace_flags = flags_of_workspace(places);
  if (!mounts_freeze("/")) return fault_at(STEP_FREEZE);
  bool has_devices;
  struct fault fault = build_scaffold(places, &has_devices);
  for (int i = 0; i < places->count && !is_fault(fault); i++) fault = mount_place(places, i, workspace_flags);
  if (is_fault(fault)) return fault;
  if (!bind_path("dev", "/dev") || !devices_mount("/dev", "shm", has_devices ? ABSENT : dev_fd)) return fault_at(STEP_DEVICES);
  if (!mount_proc(has_own_pids)) return fault_at(STEP_PROC);
  return chdir("/") == 0 ? no_fault() : fault_at(STEP_SCAFFOLD);
}

struct fault host_view_build(const struct arguments *arguments, bool has_own_pids) {
  struct places places;
  if (!places_find(&places, arguments)) return fault_at(STEP_PLACES);
  int dev_fd = openat(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dev_fd < 0) return fault_at(STEP_DEVICES);
  struct fault fault = build(&places, dev_fd, has_own_pids);
  close(dev_fd);
  places_close(&places);
  return fault;
}
