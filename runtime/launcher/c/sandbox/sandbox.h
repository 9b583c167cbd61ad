/*
 * The sandbox of one task.
 *
 * Who does what: the launcher stays outside, as it is for every task. Its child is born into most of the new namespaces
 * (namespaces.h), joins the control groups, makes the view of files (view.h) and loses all rights (privileges.h). Then,
 * where there is a pid namespace, it becomes its init (init.h), and its own child the task; otherwise it becomes the task
 * itself. The task adds what only concerns it: session, streams, limits, working directory, and last the filter for
 * system calls (seccomp.h).
 *
 * Every step that the host or a filter around us forbids is a fault of its own name: nothing is left out in silence. What
 * a host is known to lack is left out by whoever asks, by not naming it.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "base/features.h"

struct sandbox {
  const struct arguments *arguments;
  /* Without one nothing else holds. */
  bool is_on;
  unsigned int features;
  bool is_root;
  /* Of the task, in its sandbox and on the host. */
  uid_t uid;
  gid_t gid;
};

struct sandbox sandbox_of(const struct arguments *arguments);

bool sandbox_has(const struct sandbox *sandbox, enum feature feature);

/* The flags of clone() for the child. */
unsigned int sandbox_birth_flags(const struct sandbox *sandbox);

/* The child goes in, with all its descriptors. To be called once it has joined its control groups. */
struct fault sandbox_enter(const struct sandbox *sandbox);

/* The last step of the task itself. */
struct fault sandbox_filter(const struct sandbox *sandbox);

#endif
