/*
 * The places of a host view: what is covered, what is shown after all, where workspace and script are.
 *
 * They are sorted, so that each comes after the one it lies in. What lies in a covered place has no ground to be mounted
 * on: it has to be made there first.
 */
#ifndef PLACES_H
#define PLACES_H

#include <stdbool.h>

#include "arguments.h"

/* In this order where two have the same path. */
enum place_kind { PLACE_MASK, PLACE_TMP, PLACE_EXPOSED, PLACE_WORKSPACE, PLACE_SCRIPT };

struct place {
  enum place_kind kind;
  const char *path;
  /* The innermost place that it lies in, or ABSENT. */
  int within;
  bool is_directory;
  /* Of what is there, but for those that are covered. */
  int fd;
};

#define MAX_PLACES (2 * MAX_PATHS + 3)

struct places {
  int count;
  struct place all[MAX_PLACES];
};

/* Opens what is to be shown. Paths that are not there, and those that change nothing, are left out. False with errno. */
bool places_find(struct places *places, const struct arguments *arguments);

void places_close(struct places *places);

/* The part of the path of `inner` below that of `outer`, which it lies in; without a slash in front. */
const char *path_within(const struct place *inner, const struct place *outer);

#endif
