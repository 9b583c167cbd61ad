#include "base/arguments.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/features.h"

/* Longest wait after KILL that somebody may want; the default gives a slow disk time to let go of a process. */
#define DEFAULT_GIVE_UP_MS 30000

/* Largest number of any kind: as microseconds or bytes it is far from the end of 64 bits. */
#define MAX_NUMBER 999999999999999

/* The first descriptor that is not a standard stream, and the last that any system hands out. */
#define MIN_FD 3
#define MAX_FD 1073741823

#define MAX_PORT 65535

/* The longest name of a Unix socket in its directory. */
#define MAX_SOCKET_NAME_BYTES 107

enum option_kind { KIND_TEXT, KIND_NUMBER };

struct option {
  const char *name;
  size_t offset;
  enum option_kind kind;
  bool is_required;
  int64_t min;
  int64_t max;
};

#define TEXT(flag, field, required) {flag, offsetof(struct arguments, field), KIND_TEXT, required, 0, 0}
#define NUMBER(flag, field, required, min, max) {flag, offsetof(struct arguments, field), KIND_NUMBER, required, min, max}

static const struct option OPTIONS[] = {
  TEXT("--task-id", task_id, true),
  TEXT("--task-dir", task_dir, true),
  TEXT("--task-dir-id", task_dir_id, false),
  TEXT("--workdir", workdir, true),
  TEXT("--stdin", stdin_name, false),
  NUMBER("--wall-time-ms", wall_time_ms, true, 1, MAX_NUMBER),
  NUMBER("--grace-ms", grace_ms, true, 0, MAX_NUMBER),
  NUMBER("--give-up-ms", give_up_ms, false, 0, MAX_NUMBER),
  NUMBER("--max-output-bytes", max_output_bytes, true, 1, MAX_NUMBER),
  NUMBER("--disk-bytes", disk_bytes, false, 1, MAX_NUMBER),
  NUMBER("--mask-count", mask_count, false, 1, MAX_NUMBER),
  NUMBER("--cpu-time-sec", cpu_time_sec, false, 1, MAX_NUMBER),
  NUMBER("--address-space-bytes", address_space_bytes, false, 1, MAX_NUMBER),
  TEXT("--cgroup-v2", cgroup_v2, false),
  TEXT("--cgroup-v1-pids", cgroup_v1_pids, false),
  TEXT("--cgroup-v1-memory", cgroup_v1_memory, false),
  NUMBER("--memory-max", memory_max, false, 1, MAX_NUMBER),
  NUMBER("--pids-max", pids_max, false, 1, MAX_NUMBER),
  TEXT("--sandbox", sandbox, false),
  NUMBER("--sandbox-uid", sandbox_uid, false, 1, MAX_UID),
  TEXT("--egress-socket", egress_socket, false),
  NUMBER("--egress-port", egress_port, false, 1, MAX_PORT),
  NUMBER("--lock-fd", lock_fd, false, MIN_FD, MAX_FD),
  NUMBER("--notify-fd", notify_fd, false, MIN_FD, MAX_FD),
};
#define OPTION_COUNT (sizeof OPTIONS / sizeof OPTIONS[0])

static const char **text_field(struct arguments *arguments, const struct option *option) {
  return (const char **)(void *)((char *)arguments + option->offset);
}

static int64_t *number_field(struct arguments *arguments, const struct option *option) {
  return (int64_t *)(void *)((char *)arguments + option->offset);
}

/* Digits only: no sign, no space, no other base. */
static bool parse_number(const char *string, int64_t *number) {
  size_t length = strlen(string);
  if (length == 0 || length > 15 || strspn(string, "0123456789") != length) return false;
  *number = 0;
  for (const char *digit = string; *digit != '\0'; digit++) *number = *number * 10 + (*digit - '0');
  return true;
}

static bool set_option(struct arguments *arguments, const struct option *option, const char *value, struct text *complaint) {
  if (option->kind == KIND_TEXT) {
    const char **field = text_field(arguments, option);
    if (*field != NULL) return COMPLAIN(complaint, "given twice: %s", option->name);
    if (*value == '\0') return COMPLAIN(complaint, "an empty value: %s", option->name);
    *field = value;
    return true;
  }
  int64_t *field = number_field(arguments, option);
  if (*field != ABSENT) return COMPLAIN(complaint, "given twice: %s", option->name);
  int64_t number;
  if (!parse_number(value, &number) || number < option->min || number > option->max)
    return COMPLAIN(complaint, "not a number that is possible: %s", option->name);
  *field = number;
  return true;
}

/* An id goes into lines that others split at spaces. */
static bool is_task_id(const char *id) {
  size_t length = strlen(id);
  const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return length >= 1 && length <= MAX_TASK_ID_BYTES && strspn(id, allowed) == length;
}

bool arguments_name_task(const struct arguments *arguments) {
  return arguments->task_id != NULL && is_task_id(arguments->task_id);
}

bool arguments_parse_fd(const char *string, int64_t *fd) {
  return parse_number(string, fd) && *fd >= MIN_FD && *fd <= MAX_FD;
}

/* Nobody becomes root, and nobody but root becomes somebody else. */
static bool check_sandbox(const struct arguments *arguments, struct text *complaint) {
  unsigned int features;
  if (arguments->sandbox == NULL)
    return (arguments->sandbox_uid == ABSENT && arguments->mounts.count == 0 && arguments->egress_socket == NULL) ||
           COMPLAIN(complaint, "--sandbox-uid, --mount and --egress-socket need --sandbox");
  if (!features_parse(arguments->sandbox, &features)) return COMPLAIN(complaint, "not what a sandbox is made of: %s", arguments->sandbox);
  if ((geteuid() == 0) != (arguments->sandbox_uid != ABSENT))
    return COMPLAIN(complaint, "--sandbox-uid is for root, which needs it");
  /* Without a list the task could write to the whole host. */
  if (((features & FEATURE_MOUNT) != 0) != (arguments->mounts.count > 0))
    return COMPLAIN(complaint, "--sandbox mount and --mount need each other");
  /* On the loopback of the host, everybody could use it. */
  if (arguments->egress_socket != NULL && (features & FEATURE_NET) == 0)
    return COMPLAIN(complaint, "--egress-socket needs --sandbox net");
  return true;
}

static bool check_egress(const struct arguments *arguments, struct text *complaint) {
  const char *path = arguments->egress_socket;
  if ((path != NULL) != (arguments->egress_port != ABSENT))
    return COMPLAIN(complaint, "--egress-socket and --egress-port need each other");
  if (path == NULL) return true;
  const char *slash = strrchr(path, '/');
  size_t name_bytes = slash == NULL ? 0 : strlen(slash + 1);
  if (path[0] != '/' || name_bytes == 0 || name_bytes > MAX_SOCKET_NAME_BYTES || strlen(path) >= TEXT_BYTES)
    return COMPLAIN(complaint, "--egress-socket must be an absolute path with a name of 1 to 107 bytes");
  return true;
}

static bool check_combination(const struct arguments *arguments, struct text *complaint) {
  bool has_v1 = arguments->cgroup_v1_pids != NULL || arguments->cgroup_v1_memory != NULL;
  bool has_v2 = arguments->cgroup_v2 != NULL;
  if (has_v1 && has_v2) return COMPLAIN(complaint, "--cgroup-v2 does not go with --cgroup-v1-pids, --cgroup-v1-memory");
  if (arguments->memory_max != ABSENT && !has_v2 && arguments->cgroup_v1_memory == NULL)
    return COMPLAIN(complaint, "--memory-max needs --cgroup-v2 or --cgroup-v1-memory");
  if (arguments->pids_max != ABSENT && !has_v2 && arguments->cgroup_v1_pids == NULL)
    return COMPLAIN(complaint, "--pids-max needs --cgroup-v2 or --cgroup-v1-pids");
  if (!arguments_name_task(arguments))
    return COMPLAIN(complaint, "--task-id must be 1 to 128 letters, digits, -, _ or .");
  return check_egress(arguments, complaint) && check_sandbox(arguments, complaint);
}

bool arguments_parse(struct arguments *arguments, char **argv, struct text *complaint) {
  memset(arguments, 0, offsetof(struct arguments, mounts));
  arguments->mounts.count = 0;
  arguments->fork_server_pid = ABSENT;
  for (size_t i = 0; i < OPTION_COUNT; i++)
    if (OPTIONS[i].kind == KIND_NUMBER) *number_field(arguments, &OPTIONS[i]) = ABSENT;

  char **at = argv[0] == NULL ? argv : argv + 1;
  while (*at != NULL && strcmp(*at, "--") != 0) {
    if (strcmp(*at, "--mount") == 0) {
      at = mount_list_add(&arguments->mounts, at, complaint);
      if (at == NULL) return false;
      continue;
    }
    size_t i = 0;
    while (i < OPTION_COUNT && strcmp(*at, OPTIONS[i].name) != 0) i++;
    if (i == OPTION_COUNT) return COMPLAIN(complaint, "unknown argument: %s", *at);
    if (at[1] == NULL) return COMPLAIN(complaint, "without a value: %s", *at);
    if (!set_option(arguments, &OPTIONS[i], at[1], complaint)) return false;
    at += 2;
  }
  for (size_t i = 0; i < OPTION_COUNT; i++) {
    const struct option *option = &OPTIONS[i];
    if (!option->is_required) continue;
    bool is_number = option->kind == KIND_NUMBER;
    bool is_absent = is_number ? *number_field(arguments, option) == ABSENT : *text_field(arguments, option) == NULL;
    if (is_absent) return COMPLAIN(complaint, "missing: %s", option->name);
  }
  if (*at == NULL || at[1] == NULL) return COMPLAIN(complaint, "missing: -- PROGRAM ARGS...");
  arguments->command = at + 1;
  if (arguments->give_up_ms == ABSENT) arguments->give_up_ms = DEFAULT_GIVE_UP_MS;
  return check_combination(arguments, complaint);
}
