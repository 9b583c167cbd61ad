/*
 * The list of mounts that builds the file view of a task, as given on the command line. sandbox/view.h explains the
 * entries. runtime/launch/sandbox-view.ts decides which ones there are.
 */
#ifndef MOUNT_LIST_H
#define MOUNT_LIST_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/text.h"

enum mount_op {
  OP_FREEZE,
  OP_TMPFS,
  OP_DIR,
  OP_MOUNTPOINT,
  OP_REMOUNT,
  OP_BIND,
  OP_BIND_TRY,
  OP_MASK,
  OP_ALLOW,
  OP_SYMLINK,
  OP_DEVPTS,
  OP_PROC,
  OP_BIND_ENTRIES,
  OP_PIVOT
};

struct mount_entry {
  enum mount_op op;
  /* The step of a failure. */
  enum step step;
  /* NULL if the operation has none. */
  const char *source;
  const char *target;
  const char *options;
};

/* More than a service needs: two for each path that it hides or shows (host/sandbox-paths.ts), and some 50 others. */
#define MAX_MOUNTS 640

struct mount_list {
  int count;
  struct mount_entry entries[MAX_MOUNTS];
};

/*
 * Parses one entry: `--mount`, the name of an operation and its operands. Returns the next word, or NULL with a sentence in
 * `complaint`.
 */
char **mount_list_add(struct mount_list *list, char **words, struct text *complaint);

/* The path to report for a failed entry: the source of bind-entries, or the target. NULL if no entry failed. */
const char *mount_list_name(const struct mount_list *list, struct fault fault);

#endif
