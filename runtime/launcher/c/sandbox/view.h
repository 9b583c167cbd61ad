/*
 * What a task sees of the files of the machine.
 *
 * Without a root of its own: the host as it is, read-only, where some places are covered by empty ones, some parts of
 * these shown after all, and the workspace and the script put where they are on the host. With one: that tree, read-only,
 * with the workspace at /workspace and the script at /script, and nothing else. In both a /dev with the few devices that
 * all programs expect, a /tmp and a /dev/shm of its own, of a limited size, and a /proc that shows its own processes.
 *
 * All of it is built on one file system in memory, the scaffold, which is mounted over /dev while we work: for the one
 * view it holds the empty places, for the other it is the root.
 */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>

#include "base/arguments.h"
#include "base/fault.h"

/* Where the scaffold is built. */
#define SCAFFOLD_AT "/dev"

/* Where a root of its own has what is not part of it. */
#define ROOT_WORKSPACE "workspace"
#define ROOT_SCRIPT "script"

/*
 * All of it is one file system in memory, of which /tmp and /dev/shm are the parts that a task can write. What it writes
 * counts as its memory where that is limited; where it is not, this much of the machine's is the most that it gets.
 */
#define SCAFFOLD_OPTIONS "mode=0755,size=512m,nr_inodes=65536"

/*
 * `has_own_pids` says whether there is a pid namespace to show. The mounts of the namespace must be private already
 * (mounts_make_private), or all of this would be mounted on the host as well.
 */
struct fault host_view_build(const struct arguments *arguments, bool has_own_pids);
struct fault root_view_build(const struct arguments *arguments, bool has_own_pids);

#endif
