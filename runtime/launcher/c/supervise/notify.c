#include "supervise/notify.h"

#include <errno.h>
#include <unistd.h>

static void start_line(struct text *line, const char *word, const struct arguments *arguments) {
  text_clear(line);
  text_add(line, word);
  text_add(line, " ");
  text_add(line, arguments->task_id);
}

static void add_field(struct text *line, int64_t number) {
  text_add(line, " ");
  text_add_number(line, number);
}

/* All of it or nothing. False when it would fit later; when nobody listens it never will. */
static bool send_line(struct text *line, const struct arguments *arguments) {
  text_add(line, "\n");
  return write((int)arguments->notify_fd, line->bytes, line->length) >= 0 || errno != EAGAIN;
}

void notify_started(const struct arguments *arguments, const struct identity *identity) {
  if (arguments->notify_fd == ABSENT) return;
  struct text line;
  start_line(&line, "started", arguments);
  add_field(&line, identity->launcher_pid);
  add_field(&line, identity->pid);
  add_field(&line, identity->pid);
  add_field(&line, identity->start_time);
  add_field(&line, identity->started_ms);
  send_line(&line, arguments);
}

/* A line that says no more than that. */
static void send_word(const char *word, const struct arguments *arguments) {
  if (arguments->notify_fd == ABSENT) return;
  struct text line;
  start_line(&line, word, arguments);
  send_line(&line, arguments);
}

void notify_timeout(const struct arguments *arguments) { send_word("timeout", arguments); }

void notify_ended(const struct arguments *arguments) { send_word("ended", arguments); }

bool notify_failed(const struct arguments *arguments, struct fault fault) {
  if (arguments->notify_fd == ABSENT) return true;
  struct text line;
  start_line(&line, "failed", arguments);
  text_add(&line, " ");
  text_add(&line, step_name(fault.step));
  add_field(&line, fault.error);
  return send_line(&line, arguments);
}

bool notify_gone(const struct arguments *arguments, uint32_t launch, int exit_code, bool is_killed) {
  struct text line;
  start_line(&line, "gone", arguments);
  add_field(&line, launch);
  add_field(&line, exit_code);
  if (is_killed) text_add(&line, " killed");
  return send_line(&line, arguments);
}
