/*
 * The places of a host view: what is covered, what is the task's own, what is shown after all, where workspace and script
 * are.
 *
 * They are sorted, so that each comes after the one it lies in. What lies in a covered place has no ground to be mounted
 * on: it has to be made there first.
 */
#ifndef PLACES_H
#define PLACES_H

#include <stdbool.h>

#include "base/arguments.h"

/*
 * In this order where two have the same path. From /tmp to /proc: what each task has of its own. Of the host nothing is
 * left there to cover, but for /proc, in which much is the same.
 */
enum place_kind {
  PLACE_MASK,
  PLACE_TMP,
  PLACE_DEV,
  PLACE_SHM,
  PLACE_PROC,
  PLACE_EXPOSED,
  PLACE_WORKSPACE,
  PLACE_SCRIPT
};

struct place {
  enum place_kind kind;
  const char *path;
  /* The innermost place that it lies in, or ABSENT. */
  int within;
  bool is_directory;
  /* Of what is shown. */
  int fd;
};

#define MAX_PLACES (2 * MAX_PATHS + 6)

struct places {
  int count;
  struct place all[MAX_PLACES];
};

/* Opens what is to be shown. Paths that are not there, and those that change nothing, are left out. False with errno. */
bool places_find(struct places *places, const struct arguments *arguments);

void places_close(struct places *places);

/* The kind of the innermost place that `place` lies in; PLACE_SCRIPT, in which nothing lies, where there is none. */
enum place_kind kind_around(const struct places *places, const struct place *place);

/* The part of the path of `inner` below that of `outer`, which it lies in; without a slash in front. */
const char *path_within(const struct place *inner, const struct place *outer);

#endif
