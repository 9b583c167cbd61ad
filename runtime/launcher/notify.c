#include "notify.h"

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

static void send_line(struct text *line, const struct arguments *arguments) {
  text_add(line, "\n");
  ssize_t written = write((int)arguments->notify_fd, line->bytes, line->length);
  (void)written; /* all of it or nothing; nothing means that nobody listens */
}

void notify_started(const struct arguments *arguments, const struct identity *identity) {
  if (arguments->notify_fd == ABSENT) return;
  struct text line;
  start_line(&line, "started", arguments);
  add_field(&line, identity->pid);
  add_field(&line, identity->pid);
  add_field(&line, identity->start_time);
  add_field(&line, identity->started_ms);
  send_line(&line, arguments);
}

void notify_ended(const struct arguments *arguments) {
  if (arguments->notify_fd == ABSENT) return;
  struct text line;
  start_line(&line, "ended", arguments);
  send_line(&line, arguments);
}

void notify_failed(const struct arguments *arguments, struct fault fault) {
  if (arguments->notify_fd == ABSENT) return;
  struct text line;
  start_line(&line, "failed", arguments);
  text_add(&line, " ");
  text_add(&line, step_name(fault.step));
  add_field(&line, fault.error);
  send_line(&line, arguments);
}
