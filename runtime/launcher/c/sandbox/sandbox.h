/*
 * The sandbox of one task.
 *
 * The launcher stays outside. Its child is cloned into most of the new namespaces (namespaces.h), joins the cgroups, builds
 * the file view (view.h) and drops all privileges (privileges.h). With a pid namespace the child then becomes its init
 * (supervise/init.h) and forks the task; otherwise it becomes the task itself. The task sets up its session, streams,
 * limits and working directory, and last the seccomp filter (seccomp.h).
 *
 * Every step that the host or a surrounding seccomp filter forbids fails under its own name. No step is skipped in
 * silence: the service does not ask for features that the host lacks.
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
