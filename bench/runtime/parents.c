/*
 * A parent of its own for every task, which outlives the server: the least that a launcher has to be. For each line
 * `ID DIRECTORY` on its input a process that runs /bin/true with stdout.log and stderr.log of that directory, inherits
 * whatever loses its parent, waits until nothing is left, and writes `outcome` there. Then it prints `ID EXIT_CODE`.
 *
 * It limits nothing, passes on no signals, and trusts every line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LINE 4096

static int open_in(const char *directory, const char *name) {
  char path[MAX_LINE + 32];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) exit(1);
  return fd;
}

static _Noreturn void be_parent(const char *id, const char *directory) {
  char *const command[] = {"/bin/true", NULL}, *const environment[] = {NULL};
  int stdout_fd = open_in(directory, "stdout.log"), stderr_fd = open_in(directory, "stderr.log");
  int outcome_fd = open_in(directory, "outcome");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t task = vfork();
  if (task == 0) {
    setsid();
    dup2(stdout_fd, 1);
    dup2(stderr_fd, 2);
    execve(command[0], command, environment);
    _exit(127);
  }
  int status, exit_code = 127;
  for (pid_t pid; (pid = wait(&status)) > 0;)
    if (pid == task) exit_code = WEXITSTATUS(status);
  char line[MAX_LINE];
  int length = snprintf(line, sizeof line, "%s %d\n", id, exit_code);
  if (write(outcome_fd, line, (size_t)length) != length || write(1, line, (size_t)length) != length) _exit(1);
  _exit(0);
}

int main(void) {
  static char input[1 << 16];
  size_t there = 0;
  signal(SIGCHLD, SIG_IGN); /* the lines say all */
  for (ssize_t got; (got = read(0, input + there, sizeof input - there - 1)) > 0;) {
    there += (size_t)got;
    char *line = input;
    for (char *end; (end = memchr(line, '\n', there - (size_t)(line - input))) != NULL; line = end + 1) {
      *end = '\0';
      char *space = strchr(line, ' ');
      *space = '\0';
      pid_t pid = fork();
      if (pid < 0) return 1;
      if (pid > 0) continue;
      signal(SIGCHLD, SIG_DFL);
      setpgid(0, 0);
      be_parent(line, space + 1);
    }
    there -= (size_t)(line - input);
    memmove(input, line, there);
  }
  return 0;
}
