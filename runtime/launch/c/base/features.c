#include "base/features.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  enum feature feature;
} FEATURES[] = {
  {"mount", FEATURE_MOUNT}, {"pid", FEATURE_PID},       {"uts", FEATURE_UTS},   {"ipc", FEATURE_IPC},
  {"net", FEATURE_NET},     {"cgroup", FEATURE_CGROUP}, {"user", FEATURE_USER}, {"seccomp", FEATURE_SECCOMP},
};
#define FEATURE_COUNT (sizeof FEATURES / sizeof FEATURES[0])

bool features_parse(const char *names, unsigned int *features) {
  *features = 0;
  if (strcmp(names, "none") == 0) return true;
  for (const char *at = names;; at++) {
    size_t length = strcspn(at, ",");
    size_t i = 0;
    while (i < FEATURE_COUNT && (strncmp(at, FEATURES[i].name, length) != 0 || FEATURES[i].name[length] != '\0')) i++;
    if (i == FEATURE_COUNT) return false;
    *features |= FEATURES[i].feature;
    at += length;
    if (*at == '\0') return true;
  }
}
