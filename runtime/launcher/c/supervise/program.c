#include "supervise/program.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Where to look without PATH. */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Errors after which the next directory may still have it. */
static bool is_elsewhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENAMETOOLONG;
}

/* `directory/name`; an empty directory is the present one. */
static bool join_path(char *path, const char *directory, size_t directory_length, const char *name) {
  size_t name_length = strlen(name);
  if (directory_length + 1 + name_length + 1 > PATH_MAX) return false;
  memcpy(path, directory, directory_length);
  if (directory_length > 0) path[directory_length++] = '/';
  memcpy(path + directory_length, name, name_length + 1);
  return true;
}

void program_exec(char **command) {
  const char *name = command[0];
  if (*name == '\0' || strchr(name, '/') != NULL) {
    execve(name, command, environ);
    return;
  }
  const char *directories = getenv("PATH");
  if (directories == NULL) directories = DEFAULT_PATH;
  /* A file that was there but may not be executed says more than its absence from other places. */
  bool is_forbidden = false;
  for (const char *at = directories;; at++) {
    size_t length = strcspn(at, ":");
    char path[PATH_MAX];
    if (join_path(path, at, length, name)) execve(path, command, environ);
    else errno = ENAMETOOLONG;
    if (!is_elsewhere(errno)) return;
    is_forbidden = is_forbidden || errno == EACCES;
    at += length;
    if (*at == '\0') break;
  }
  errno = is_forbidden ? EACCES : ENOENT;
}
