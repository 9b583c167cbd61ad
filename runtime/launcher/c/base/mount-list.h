/*
 * The mounts that make the files a task sees, in order, as they are given on the command line. What each entry means is
 * said in view.h; which there are, and why, is decided by runtime/intake/sandbox-view.ts.
 */
#ifndef MOUNT_LIST_H
#define MOUNT_LIST_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/text.h"

enum mount_op {
  OP_FREEZE,
  OP_TMPFS,
  OP_DEVICES,
  OP_DIR,
  OP_GROUND,
  OP_REMOUNT,
  OP_BIND,
  OP_BIND_TRY,
  OP_MASK,
  OP_ALLOW,
  OP_DEV,
  OP_PROC,
  OP_TREE,
  OP_PIVOT
};

struct mount_entry {
  enum mount_op op;
  /* What a failure is reported as. */
  enum step step;
  /* NULL where the operation has none. */
  const char *source;
  const char *target;
  const char *options;
};

/* More than a service asks for: two for each of the places that it hides or shows (host/sandbox-paths.ts), and our own. */
#define MAX_MOUNTS 640

struct mount_list {
  int count;
  struct mount_entry entries[MAX_MOUNTS];
};

/*
 * Adds the entry at `words`: the name of an operation and its operands. The number of words that it took; 0 with a
 * sentence in `complaint` when it is none.
 */
int mount_list_add(struct mount_list *list, char **words, struct text *complaint);

/* What the entry that failed is known by: the tree that it shows, or its target. NULL where it was none. */
const char *mount_list_name(const struct mount_list *list, struct fault fault);

#endif
