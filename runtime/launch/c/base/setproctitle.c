#include "base/setproctitle.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Memory that /proc shows. Null if there is none. */
static struct {
  char *program;
  /* After the program name. */
  char *arguments;
  size_t arguments_bytes;
  char *mark;
  size_t mark_bytes;
} title;

static char *mark_of(char **variables) {
  size_t length = strlen(MARK_NAME "=");
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, MARK_NAME "=", length) == 0) return *variables + length;
  return NULL;
}

void setproctitle_find(char **argv, char **variables) {
  if (argv[0] != NULL && argv[1] != NULL) {
    /* They lie one after the other, as the kernel put them. */
    char *end = argv[1] + strlen(argv[1]) + 1;
    for (char **next = argv + 2; *next == end; next++) end += strlen(*next) + 1;
    title.program = argv[0];
    title.arguments = argv[1];
    title.arguments_bytes = (size_t)(end - argv[1]);
  }
  title.mark = mark_of(variables);
  if (title.mark != NULL) title.mark_bytes = strlen(title.mark) + 1;
}

char **setproctitle_copy(char **argv) {
  /* Static, so that a leak checker finds its memory. */
  static char **copy;
  size_t count = 0;
  while (argv[count] != NULL) count++;
  copy = calloc(count + 1, sizeof *copy);
  for (size_t i = 0; i < count && copy != NULL; i++)
    if ((copy[i] = strdup(argv[i])) == NULL) return NULL;
  return copy;
}

/* Shows as many strings as there is room for, and zeros behind them. */
static void show_arguments(char **strings) {
  memset(title.arguments, 0, title.arguments_bytes);
  size_t at = 0;
  for (; *strings != NULL; strings++) {
    size_t length = strlen(*strings) + 1;
    if (length > title.arguments_bytes - at) return;
    memcpy(title.arguments + at, *strings, length);
    at += length;
  }
}

void setproctitle_show(char **argv, char **variables) {
  if (title.arguments != NULL) show_arguments(argv + 1);
  if (title.mark == NULL) return;
  memset(title.mark, 0, title.mark_bytes);
  const char *mark = mark_of(variables);
  if (mark != NULL && strlen(mark) < title.mark_bytes) memcpy(title.mark, mark, strlen(mark));
}

void setproctitle_hide(const char *name) {
  if (title.arguments == NULL) return;
  size_t room = (size_t)(title.arguments - title.program) + title.arguments_bytes;
  memset(title.program, 0, room);
  size_t length = strlen(name);
  memcpy(title.program, name, length < room ? length : room - 1);
}
