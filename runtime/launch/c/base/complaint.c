#include "base/complaint.h"

#include <string.h>
#include <unistd.h>

#include "base/files.h"

/* Bytes of a complaint that are shown: the argument that it names may be long. */
#define SHOWN "2000"

/* One line, whatever was given. */
static void print_line(struct text *line) {
  for (size_t i = 0; i < line->length; i++)
    if ((unsigned char)line->bytes[i] < ' ' || line->bytes[i] == '\x7f') line->bytes[i] = '?';
  text_add(line, "\n");
  write_all(STDERR_FILENO, line->bytes, line->length, AT_END);
}

void complain_of_usage(const struct text *complaint) {
  struct text line;
  text_set(&line, "taskmill-launcher: %." SHOWN "s", complaint->bytes);
  print_line(&line);
}

void complain_of_fault(const char *task_id, struct fault fault) {
  struct text line;
  text_set(&line, "taskmill-launcher: task %s: %s: %s", task_id, step_name(fault.step), strerror(fault.error));
  print_line(&line);
}
