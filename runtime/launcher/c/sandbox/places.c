#include "sandbox/places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"

/* Private to each task. */
static const struct {
  enum place_kind kind;
  const char *path;
} OWN[] = {{PLACE_TMP, "/tmp"}, {PLACE_DEV, "/dev"}, {PLACE_SHM, "/dev/shm"}, {PLACE_PROC, "/proc"}};
#define OWN_COUNT (sizeof OWN / sizeof OWN[0])

const char *path_within(const struct place *inner, const struct place *outer) {
  const char *rest = inner->path + strlen(outer->path);
  return rest + strspn(rest, "/");
}

static int compare(const struct place *left, const struct place *right) {
  int order = strcmp(left->path, right->path);
  return order != 0 ? order : (int)left->kind - (int)right->kind;
}

static void insert(struct places *places, enum place_kind kind, const char *path) {
  struct place place = {.kind = kind, .path = path, .within = ABSENT, .fd = ABSENT};
  int at = places->count++;
  for (; at > 0 && compare(&places->all[at - 1], &place) > 0; at--) places->all[at] = places->all[at - 1];
  places->all[at] = place;
}

enum place_kind kind_around(const struct places *places, const struct place *place) {
  return place->within == ABSENT ? PLACE_SCRIPT : places->all[place->within].kind;
}

/* Nothing is covered twice, and nothing shown that is seen anyway. */
static bool is_needed(const struct places *places, const struct place *place) {
  bool is_covered = kind_around(places, place) < PLACE_PROC;
  if (place->kind == PLACE_MASK) return !is_covered;
  return place->kind != PLACE_EXPOSED || is_covered;
}

/* False when it is not there. */
static bool look(struct place *place) {
  struct stat status;
  if (place->kind < PLACE_EXPOSED) {
    if (stat(place->path, &status) != 0) return false;
  } else {
    place->fd = openat(AT_FDCWD, place->path, O_PATH | O_CLOEXEC);
    if (place->fd < 0 || fstat(place->fd, &status) != 0) return false;
  }
  place->is_directory = S_ISDIR(status.st_mode);
  return true;
}

/* Without it there is no view. */
static bool is_vital(enum place_kind kind) { return kind == PLACE_DEV || kind == PLACE_PROC || kind >= PLACE_WORKSPACE; }

static bool has_path(const struct path_list *list, const char *path) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->paths[i], path) == 0) return true;
  return false;
}

bool places_find(struct places *places, const struct arguments *arguments) {
  struct places given;
  given.count = places->count = 0;
  for (size_t i = 0; i < OWN_COUNT; i++) insert(&given, OWN[i].kind, OWN[i].path);
  /* What is shown as a whole needs no cover; mounted over one, it would bring that along. */
  for (int i = 0; i < arguments->sandbox_masks.count; i++) {
    const char *path = arguments->sandbox_masks.paths[i];
    if (!has_path(&arguments->sandbox_exposed, path)) insert(&given, PLACE_MASK, path);
  }
  for (int i = 0; i < arguments->sandbox_exposed.count; i++)
    insert(&given, PLACE_EXPOSED, arguments->sandbox_exposed.paths[i]);
  if (arguments->sandbox_workspace != NULL) insert(&given, PLACE_WORKSPACE, arguments->sandbox_workspace);
  if (arguments->sandbox_script != NULL) insert(&given, PLACE_SCRIPT, arguments->sandbox_script);

  for (int i = 0; i < given.count; i++) {
    struct place place = given.all[i];
    for (int outer = 0; outer < places->count; outer++)
      if (is_within(place.path, places->all[outer].path)) place.within = outer;
    if (!is_needed(places, &place)) continue;
    if (look(&place)) places->all[places->count++] = place;
    else if (is_vital(place.kind) || (errno != ENOENT && errno != ENOTDIR)) return false;
  }
  return true;
}

void places_close(struct places *places) {
  for (int i = 0; i < places->count; i++)
    if (places->all[i].fd != ABSENT) close(places->all[i].fd);
}
