/*
 * The sandbox of one task.
 *
 * The launcher stays outside. Its child is cloned into most of the new namespaces (namespaces.h), joins the cgroups, builds
 * the file view (view.h) and drops all privileges (privileges.h). With a pid namespace the child then becomes its init
 * (supervise/init.h) and forks the task; otherwise it becomes the task itself. The task sets up its session, streams,
 * limits and working directory, and last the seccomp filter (seccomp.h).
 *
 * A step that the host or a surrounding seccomp filter forbids fails under its own name. No step is skipped silently: serve
 * does not request features that the host lacks.
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
  /* If false, the other fields have no meaning. */
  bool is_on;
  unsigned int features;
  bool is_root;
  /* User and group of the task, equal in the sandbox and on the host. */
  uid_t uid;
  gid_t gid;
};

struct sandbox sandbox_of(const struct arguments *arguments);

bool sandbox_has(const struct sandbox *sandbox, enum feature feature);

/* The flags of clone() for the child. 0 without a sandbox. */
unsigned int sandbox_birth_flags(const struct sandbox *sandbox);

/*
 * Moves the child into its sandbox. To be called after it joined its cgroups. `egress_fd`: the child's end of the channel to
 * the forwarder, or ABSENT without one (egress.h).
 */
struct fault sandbox_enter(const struct sandbox *sandbox, int egress_fd);

/* Installs the seccomp filter: the last step before exec. */
struct fault sandbox_filter(const struct sandbox *sandbox);

#endif
