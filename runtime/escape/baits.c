#include "baits.h"

#include <stdlib.h>
#include <string.h>

static bool add_path(struct paths *paths, const char *path) {
  if (paths->count == MAX_PATHS) return false;
  paths->list[paths->count++] = path;
  return true;
}

/* The value of `argument` when it is of this kind. */
static const char *value_of(const char *argument, const char *kind) {
  size_t length = strlen(kind);
  return strncmp(argument, kind, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

bool baits_add(struct baits *baits, const char *argument) {
  const char *value;
  if ((value = value_of(argument, "secret")) != NULL) return add_path(&baits->secrets, value);
  if ((value = value_of(argument, "unix")) != NULL) return add_path(&baits->sockets, value);
  if ((value = value_of(argument, "abstract")) != NULL) baits->abstract_name = value;
  else if ((value = value_of(argument, "tcp")) != NULL) baits->tcp_port = atoi(value);
  else if ((value = value_of(argument, "service")) != NULL) baits->service_port = atoi(value);
  else if ((value = value_of(argument, "proxy")) != NULL) baits->proxy_port = atoi(value);
  else if ((value = value_of(argument, "planted")) != NULL) baits->secret_mark = value;
  else if ((value = value_of(argument, "echo")) != NULL) baits->echo_port = atoi(value);
  else if ((value = value_of(argument, "placeholder")) != NULL) baits->placeholder = value;
  else if ((value = value_of(argument, "pid")) != NULL) baits->pid = atoi(value);
  else if ((value = value_of(argument, "shm")) != NULL) baits->shm_key = atoi(value);
  else if ((value = value_of(argument, "mqueue")) != NULL) baits->queue_name = value;
  else if ((value = value_of(argument, "setuid")) != NULL) baits->setuid_program = value;
  else if ((value = value_of(argument, "pids-max")) != NULL) baits->pids_max = atol(value);
  else if ((value = value_of(argument, "memory-bytes")) != NULL) baits->memory_bytes = atol(value);
  else if ((value = value_of(argument, "tmp-bytes")) != NULL) baits->tmp_bytes = atol(value);
  else if ((value = value_of(argument, "shm-bytes")) != NULL) baits->shm_bytes = atol(value);
  return value != NULL;
}
