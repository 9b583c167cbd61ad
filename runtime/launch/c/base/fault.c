#include "base/fault.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define NAME_OF(step, name, voice) [step] = name,
static const char *const NAMES[] = {STEPS(NAME_OF)};

#define LAUNCH false
#define SANDBOX true
#define VOICE_OF(step, name, voice) [step] = voice,
static const bool IS_SANDBOX[] = {STEPS(VOICE_OF)};

const char *step_name(enum step step) { return NAMES[step]; }

enum step step_named(const char *name) {
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
    if (strcmp(NAMES[i], name) == 0) return (enum step)i;
  return NO_STEP;
}

bool is_sandbox_step(enum step step) { return IS_SANDBOX[step]; }

void fault_send(int fd, struct fault fault) {
  ssize_t written = write(fd, &fault, sizeof fault); /* less than PIPE_BUF: all of it or nothing */
  (void)written;
}

struct fault fault_receive(int fd) {
  struct fault fault;
  ssize_t got;
  while ((got = read(fd, &fault, sizeof fault)) < 0 && errno == EINTR) continue;
  return got == (ssize_t)sizeof fault ? fault : no_fault();
}
