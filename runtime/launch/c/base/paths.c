#include "base/paths.h"

#include <string.h>

bool is_within(const char *path, const char *top) {
  size_t length = strlen(top);
  while (length > 0 && top[length - 1] == '/') length--;
  return strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == '\0');
}
