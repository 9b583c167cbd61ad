#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "sandbox/devices.h"
#include "sandbox/mounts.h"
#include "sandbox/places.h"
#include "sandbox/view.h"

/* What covers a file. */
#define EMPTY_FILE "empty"

/* What a view is made of besides its places. */
struct materials {
  const struct places *places;
  /* Of the host, and whether we have devices of our own instead. */
  int dev_fd;
  bool has_devices;
  bool has_own_pids;
  unsigned long workspace_flags;
};

/* The name of what covers a place, in the scaffold. */
static const char *cover_of(struct text *name, const struct places *places, int place) {
  text_clear(name);
  text_add(name, places->all[place].kind == PLACE_DEV ? "dev" : "cover-");
  if (places->all[place].kind != PLACE_DEV) text_add_number(name, place);
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
    if (place->kind == PLACE_MASK && place->is_directory && mkdir(cover_of(&name, places, i), 0755) != 0) return false;
    enum place_kind around = kind_around(places, place);
    if ((around != PLACE_MASK && around != PLACE_DEV) || place->kind == PLACE_SHM) continue;
    const char *rest = path_within(place, &places->all[place->within]);
    if (!make_ground(cover_of(&name, places, place->within), rest, place->is_directory)) return false;
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

/* The /proc of the host is as it was, but for other users' entries of no use to anybody. */
static bool mount_proc(bool has_own_pids) {
  if (has_own_pids) return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
  return remount("/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

/* What a task has of its own. */
static bool mount_own(const struct materials *materials, const struct place *place) {
  if (place->kind == PLACE_PROC) return mount_proc(materials->has_own_pids);
  if (place->kind == PLACE_TMP) return bind_path("tmp", place->path) && remount(place->path, MS_NOSUID | MS_NODEV);
  if (place->kind == PLACE_SHM) return true; /* it came with /dev */
  return bind_path("dev", place->path) &&
         devices_mount(place->path, "shm", materials->has_devices ? ABSENT : materials->dev_fd);
}

/* What is not in the /proc of the task, as processes of the host are not, is hidden as it is. */
static bool cover(const struct places *places, int index) {
  const struct place *place = &places->all[index];
  struct text name;
  if (bind_path(place->is_directory ? cover_of(&name, places, index) : EMPTY_FILE, place->path)) return true;
  return errno == ENOENT && kind_around(places, place) == PLACE_PROC;
}

/* A device that is shown may be opened, too, where that of the host may. */
static bool show_devices(const char *path) {
  return remount(path, MS_RDONLY | MS_NOSUID | MS_NOEXEC) || errno == EPERM;
}

static bool show(const struct materials *materials, const struct place *place) {
  if (!bind_fd(place->fd, place->path)) return false;
  if (place->kind == PLACE_WORKSPACE)
    return remount(place->path, materials->workspace_flags | MS_NOSUID | MS_NODEV);
  return place->kind != PLACE_EXPOSED || kind_around(materials->places, place) != PLACE_DEV || show_devices(place->path);
}

static struct fault mount_place(const struct materials *materials, int index) {
  static const enum step STEP_OF_KIND[] = {
    [PLACE_MASK] = STEP_MASK,       [PLACE_TMP] = STEP_TMP,   [PLACE_DEV] = STEP_DEVICES,
    [PLACE_SHM] = STEP_DEVICES,     [PLACE_PROC] = STEP_PROC, [PLACE_EXPOSED] = STEP_EXPOSE,
    [PLACE_WORKSPACE] = STEP_WORKSPACE, [PLACE_SCRIPT] = STEP_SCRIPT,
  };
  const struct places *places = materials->places;
  const struct place *place = &places->all[index];
  enum place_kind around = kind_around(places, place);
  bool is_mounted = true;
  if (around == PLACE_TMP || around == PLACE_SHM) {
    const struct place *outer = &places->all[place->within];
    is_mounted = make_ground(outer->path, path_within(place, outer), place->is_directory);
  }
  if (place->kind == PLACE_MASK) is_mounted = is_mounted && cover(places, index);
  else if (place->kind < PLACE_EXPOSED) is_mounted = is_mounted && mount_own(materials, place);
  else is_mounted = is_mounted && show(materials, place);
  return is_mounted ? no_fault() : fault_at(STEP_OF_KIND[place->kind]);
}

static unsigned long flags_of_workspace(const struct places *places) {
  for (int i = 0; i < places->count; i++)
    if (places->all[i].kind == PLACE_WORKSPACE) return lasting_flags(places->all[i].fd);
  return 0;
}

static struct fault build(struct materials *materials) {
  materials->workspace_flags = flags_of_workspace(materials->places);
  if (!mounts_freeze("/")) return fault_at(STEP_FREEZE);
  struct fault fault = build_scaffold(materials->places, &materials->has_devices);
  for (int i = 0; i < materials->places->count && !is_fault(fault); i++) fault = mount_place(materials, i);
  if (is_fault(fault)) return fault;
  return chdir("/") == 0 ? no_fault() : fault_at(STEP_SCAFFOLD);
}

struct fault host_view_build(const struct arguments *arguments, bool has_own_pids) {
  struct places places;
  if (!places_find(&places, arguments)) return fault_at(STEP_PLACES);
  struct materials materials = {.places = &places, .has_own_pids = has_own_pids};
  materials.dev_fd = openat(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (materials.dev_fd < 0) return fault_at(STEP_DEVICES);
  struct fault fault = build(&materials);
  close(materials.dev_fd);
  places_close(&places);
  return fault;
}
