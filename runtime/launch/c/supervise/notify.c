#include "supervise/notify.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* All of it or nothing. False when it would fit later; when nobody listens it never will. */
static bool send_line(const struct arguments *arguments, const char *line) {
  if (arguments->notify_fd == ABSENT) return true;
  return write((int)arguments->notify_fd, line, strlen(line)) >= 0 || errno != EAGAIN;
}

void notify_started(const struct arguments *arguments, const struct identity *identity) {
  struct text line;
  send_line(arguments, text_set(&line, "started %s %d %d %d %ld %ld\n", arguments->task_id, getpid(), identity->pid,
                                identity->pid, identity->start_time, identity->started_ms));
}

void notify_timeout(const struct arguments *arguments) {
  struct text line;
  send_line(arguments, text_set(&line, "timeout %s\n", arguments->task_id));
}

void notify_ended(const struct arguments *arguments) {
  struct text line;
  send_line(arguments, text_set(&line, "ended %s\n", arguments->task_id));
}

bool notify_failed(const struct arguments *arguments, struct fault fault) {
  struct text line;
  return send_line(arguments, text_set(&line, "failed %s %s %d\n", arguments->task_id, step_name(fault.step), fault.error));
}

bool notify_gone(const struct arguments *arguments, uint32_t launch, int exit_code, bool is_killed) {
  struct text line;
  return send_line(arguments, text_set(&line, "gone %s %u %d%s\n", arguments->task_id, launch, exit_code,
                                       is_killed ? " killed" : ""));
}
