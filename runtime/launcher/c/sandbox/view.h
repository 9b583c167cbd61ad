/*
 * The files that a task sees: a list of mounts (mount-list.h), applied in order.
 *
 * First all mounts of the namespace become private, so that none of what follows appears on the host. Then every source is
 * opened, so that later entries may cover it. Then each entry is applied:
 *
 *   freeze T           the mount at T and all below it become read-only, without set-user-id programs and devices
 *   tmpfs T OPTIONS    mounts a file system in memory at T, which becomes the working directory
 *   devices T          a directory with device nodes (devices.h)
 *   dir T MODE         a directory with its parents, which may be there already
 *   ground S T         the same for a mount point: a directory, or an empty file, as S is; nothing where S is not there
 *   remount T FLAGS    the flags of the mount at T become FLAGS
 *   bind STEP S T FLAGS        S appears at T, with all mounts below it; a failure is reported as STEP
 *   bind-try STEP S T FLAGS    the same, where both are there
 *   mask T S           hides T, where it is there: below the directory S, or below an empty file
 *   allow T            nothing by itself; see tree
 *   dev S T            the directory of `devices` appears at T, with what has to be mounted in it
 *   proc T             the processes of our pid namespace; where that is the host's, its /proc
 *   tree S T NAMES     each entry of the directory S appears in T, but those with NAMES
 *   pivot T            T becomes the root, and nothing is left of the old one
 *
 * T and S are paths of the host, or relative to the file system in memory. FLAGS are `same`, for those that S has by now,
 * or ro, nosuid, nodev and noexec with commas between them; among these `keep` adds the flags that S had at first, which
 * the kernel may not let us take away, and `if-permitted` forgives a refusal. NAMES have commas between them, too.
 *
 * A tree shows a part of the host. So after `tree` a mask of a path of the host hides that path where the tree has it, and
 * nothing where it does not. A tree that is itself hidden is refused (EACCES): the last mask or allow in the list that it
 * lies in decides. Its name is the one it has when it was opened, whatever links led there.
 */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/mount-list.h"

/* `has_own_pids` says whether there is a pid namespace to show. For a process in a mount namespace of its own. */
struct fault view_build(const struct mount_list *list, bool has_own_pids);

#endif
