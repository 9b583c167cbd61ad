/*
 * Builds the file view of a task: applies a list of mounts in order.
 *
 * All mounts of the namespace become private first, so that no mount appears on the host. Then every source is opened, so
 * that later entries may cover it. Then each entry is applied:
 *
 *   freeze T                      makes the mount at T and all mounts below it read-only, nosuid and nodev
 *   tmpfs T OPTIONS               mounts a tmpfs at T and changes into it
 *   dir T MODE                    creates a directory and its parents, unless they exist
 *   mountpoint S T                the same for the bind of S: a directory or an empty file, as S is; nothing without S
 *   remount T FLAGS               sets the flags of the mount at T
 *   bind STEP S T FLAGS           binds S to T recursively, then sets FLAGS; a failure is reported as STEP
 *   bind-try STEP S T FLAGS       the same, or nothing if S or T does not exist
 *   mask T S                      binds S over T if T is a directory, an empty file otherwise; nothing if T does not exist
 *   allow T                       mounts nothing; see bind-entries
 *   symlink S T                   creates a symlink to S
 *   devpts T OPTIONS              mounts a devpts
 *   proc T                        mounts proc, in a pid namespace of our own
 *   bind-entries S T NAMES        binds each entry of the directory S into T, without NAMES
 *   pivot T                       makes T the root and detaches the old one
 *
 * Absolute paths are the host's. Others are relative to the tmpfs. FLAGS are separated by commas: ro, nosuid, nodev,
 * noexec; `same` leaves the flags of S; `keep` adds the flags that the mount of S had at first, which a user namespace may
 * have locked; `if-permitted` ignores EPERM. NAMES are separated by commas, too.
 *
 * After `bind-entries S T`, a mask of a host path applies to the same path below T, and to nothing if it is outside S. If S
 * itself is masked, bind-entries fails with EACCES: of all mask and allow entries with S in their target, the last one in
 * the list decides. S may be a symlink. Its real path is read after it was opened, so nobody can swap it in between.
 */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/mount-list.h"

/* To be called in a mount namespace of our own. */
struct fault view_build(const struct mount_list *list);

#endif
