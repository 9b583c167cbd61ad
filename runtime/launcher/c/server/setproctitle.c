#include "server/setproctitle.h"

#include <string.h>

static char *mark_of(char **variables) {
  size_t length = strlen(MARK_NAME "=");
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, MARK_NAME "=", length) == 0) return *variables + length;
  return NULL;
}

void setproctitle_find(struct setproctitle *title, char **argv, char **variables) {
  *title = (struct setproctitle){.arguments = NULL};
  if (argv[0] != NULL && argv[1] != NULL) {
    /* They lie one after the other, as the kernel put them. */
    char *end = argv[1] + strlen(argv[1]) + 1;
    for (char **next = argv + 2; *next == end; next++) end += strlen(*next) + 1;
    title->arguments = argv[1];
    title->arguments_bytes = (size_t)(end - argv[1]);
  }
  title->mark = mark_of(variables);
  if (title->mark != NULL) title->mark_bytes = strlen(title->mark) + 1;
}

/* Shows as many strings as there is room for, and zeros behind them. */
static void show_arguments(const struct setproctitle *title, char **strings) {
  memset(title->arguments, 0, title->arguments_bytes);
  size_t at = 0;
  for (; *strings != NULL; strings++) {
    size_t length = strlen(*strings) + 1;
    if (length > title->arguments_bytes - at) return;
    memcpy(title->arguments + at, *strings, length);
    at += length;
  }
}

void setproctitle_show(const struct setproctitle *title, char **argv, char **variables) {
  if (title->arguments != NULL) show_arguments(title, argv + 1);
  if (title->mark == NULL) return;
  memset(title->mark, 0, title->mark_bytes);
  const char *mark = mark_of(variables);
  if (mark != NULL && strlen(mark) < title->mark_bytes) memcpy(title->mark, mark, strlen(mark));
}
