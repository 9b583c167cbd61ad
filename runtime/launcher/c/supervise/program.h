/* Finding and starting the program of a task, as execve does it. */
#ifndef PROGRAM_H
#define PROGRAM_H

/*
 * Becomes `command[0]`, with the present environment. A name without a slash is looked up in PATH. Returns only when
 * that failed, with errno set. A file without `#!` is no program: no shell is tried on it (ENOEXEC).
 */
void program_exec(char **command);

#endif
