/* Reads lists of pids in files of the kernel: digits and white space, of any length. */
#ifndef PIDS_H
#define PIDS_H

#include <stdbool.h>
#include <sys/types.h>

typedef void pid_visitor(pid_t pid, void *context);

/* Visits the pids in the file at `path` below `dir_fd`. False with errno if it cannot be read. */
bool for_each_pid(int dir_fd, const char *path, pid_visitor *visit, void *context);

#endif
