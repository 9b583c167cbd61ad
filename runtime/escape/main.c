/*
 * taskmill-escape: tries to get out of where it runs, in every way we know, and says how far it came.
 *
 * It is run inside a sandbox, with the workspace as its working directory, by somebody who has laid out baits on the host.
 * Each attempt is a line: its name, `blocked`, `open` or `not_applicable`, and what it does and how that ended, with tabs
 * between. The exit code is 0 when all were made, whatever came out of them; 2 when it was called wrongly.
 *
 *   taskmill-escape [--bait KIND=VALUE]...              all attempts that leave the sandbox alone
 *   taskmill-escape --only NAME [--bait KIND=VALUE]...  this one
 *   taskmill-escape --list                              name, `together` or `alone`, what it does
 *   taskmill-escape --keep-baits PATH...                lays out baits (keeper.c)
 *   taskmill-escape --show-uid                          what a bait does that was started: prints its effective uid
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper.h"
#include "run.h"

static const struct attempts *const ALL[] = {
  &mount_attempts,    &namespace_attempts, &cgroup_attempts, &proc_attempts,   &file_attempts,
  &write_attempts,    &process_attempts,   &identity_attempts, &socket_attempts, &kernel_attempts,
  &abi_attempts,      &device_attempts,    &resource_attempts,
  &network_attempts,  &proxy_attempts,    &secret_attempts,
};

static const char *verdict_name(enum verdict verdict) {
  return verdict == BLOCKED ? "blocked" : verdict == OPEN ? "open" : "not_applicable";
}

static void list_attempts(void) {
  for (size_t i = 0; i < COUNT_OF(ALL); i++)
    for (size_t k = 0; k < ALL[i]->count; k++) {
      const struct attempt *attempt = &ALL[i]->list[k];
      printf("%s\t%s\t%s\n", attempt->name, attempt->is_alone ? "alone" : "together", attempt->what);
    }
}

static bool is_asked_for(const struct attempt *attempt, const char *only) {
  return only == NULL ? !attempt->is_alone : strcmp(attempt->name, only) == 0;
}

/* The number of attempts made. */
static int try_all(const char *only, const struct baits *baits) {
  int made = 0;
  for (size_t i = 0; i < COUNT_OF(ALL); i++)
    for (size_t k = 0; k < ALL[i]->count; k++) {
      const struct attempt *attempt = &ALL[i]->list[k];
      if (!is_asked_for(attempt, only)) continue;
      struct result result = attempt_run(attempt, baits);
      printf("%s\t%s\tit %s: %s\n", attempt->name, verdict_name(result.verdict), attempt->what, result.detail);
      fflush(stdout); /* what comes next may be the end of us */
      made++;
    }
  return made;
}

static int refuse_usage(const char *complaint, const char *argument) {
  fprintf(stderr, "taskmill-escape: %s%s\n", complaint, argument);
  return 2;
}

int main(int argc, char **argv) {
  struct baits baits = {.starter_pid = getppid()};
  const char *only = NULL;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) return list_attempts(), 0;
  if (argc == 2 && strcmp(argv[1], "--show-uid") == 0) return printf("%u\n", (unsigned)geteuid()), 0;
  if (argc >= 2 && strcmp(argv[1], "--keep-baits") == 0) return keep_baits(argv + 2);
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return refuse_usage("nothing stands after ", argv[i]);
    if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    else if (strcmp(argv[i], "--bait") != 0) return refuse_usage("unknown argument ", argv[i]);
    else if (!baits_add(&baits, argv[i + 1])) return refuse_usage("unknown bait, or one too many: ", argv[i + 1]);
  }
  return try_all(only, &baits) > 0 ? 0 : refuse_usage("unknown attempt ", only == NULL ? "" : only);
}
