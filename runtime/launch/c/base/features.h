/* The features of a sandbox. Each works without the others, so a host that lacks one loses only that. */
#ifndef FEATURES_H
#define FEATURES_H

#include <stdbool.h>

enum feature {
  FEATURE_MOUNT = 1 << 0,
  FEATURE_PID = 1 << 1,
  FEATURE_UTS = 1 << 2,
  FEATURE_IPC = 1 << 3,
  FEATURE_NET = 1 << 4,
  FEATURE_CGROUP = 1 << 5,
  FEATURE_USER = 1 << 6,
  FEATURE_SECCOMP = 1 << 7,
};

/* Parses comma-separated names, or `none`. False for an unknown name. */
bool features_parse(const char *names, unsigned int *features);

#endif
