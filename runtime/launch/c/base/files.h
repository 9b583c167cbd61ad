/* Reads and writes small files whole. Handles EINTR and short writes. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes `fd` and keeps errno. */
void close_keeping_errno(int fd);

/* The position for pipes, and for files that are appended to. */
#define AT_END (-1)

/* Writes at a position, or AT_END. False with errno unless all bytes were written. */
bool write_all(int fd, const char *bytes, size_t length, off_t at);

/* Reads at most `size - 1` bytes of the file at `path` below `dir_fd`, as a string. False with errno. */
bool read_small_file(int dir_fd, const char *path, char *buffer, size_t size);

/* Writes to the existing file at `path` below `dir_fd`. False with errno. */
bool write_file(int dir_fd, const char *path, const char *content);

/* Creates an empty file that everybody may read. EEXIST if it exists. False with errno. */
bool make_file(const char *path);

#endif
