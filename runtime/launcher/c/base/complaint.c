#include "base/complaint.h"

#include <string.h>
#include <unistd.h>

#include "base/files.h"

/* One line, whatever was given. */
static void print_line(struct text *line) {
  for (size_t i = 0; i < line->length; i++)
    if ((unsigned char)line->bytes[i] < ' ' || line->bytes[i] == '\x7f') line->bytes[i] = '?';
  text_add(line, "\n");
  write_all(STDERR_FILENO, line->bytes, line->length);
}

void complain_of_usage(struct text *complaint) {
  struct text line;
  text_clear(&line);
  text_add(&line, "taskmill-launcher: ");
  text_add(&line, text_string(complaint));
  print_line(&line);
}

void complain_of_fault(const char *task_id, struct fault fault) {
  struct text line;
  text_clear(&line);
  text_add(&line, "taskmill-launcher: task ");
  text_add(&line, task_id);
  text_add(&line, ": ");
  text_add(&line, step_name(fault.step));
  text_add(&line, ": ");
  text_add(&line, strerror(fault.error));
  print_line(&line);
}
