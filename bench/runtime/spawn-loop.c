/*
 * What the machine can do at most: posix_spawn of /bin/true, or of another command, over and over, so many at a time.
 * Prints one line of JSON (LoopResult in loops.ts). The commands get its environment; their output is dropped.
 *
 * Usage: spawn-loop IN_FLIGHT COUNT LIMIT_MS [COMMAND...]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_IN_FLIGHT 1024

struct child {
  pid_t pid;
  double start_ms;
};

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_size(const void *left, const void *right) {
  double difference = *(const double *)left - *(const double *)right;
  return (difference > 0) - (difference < 0);
}

static posix_spawn_file_actions_t silent;

static struct child start_child(char *const command[]) {
  struct child child = {.start_ms = now_ms()};
  if (posix_spawn(&child.pid, command[0], &silent, NULL, command, environ) != 0) exit(1);
  return child;
}

static double own_cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
  char *const nothing[] = {"/bin/true", NULL};
  if (argc < 4) return 2;
  char *const *command = argc == 4 ? nothing : argv + 4;
  int in_flight = atoi(argv[1]), count = atoi(argv[2]);
  double limit_ms = atof(argv[3]);
  if (in_flight < 1 || in_flight > MAX_IN_FLIGHT || count < 1) return 2;
  posix_spawn_file_actions_init(&silent);
  posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  double *times = calloc((size_t)count, sizeof *times);
  struct child children[MAX_IN_FLIGHT];
  if (times == NULL) return 1;

  double start_ms = now_ms(), end_ms = start_ms;
  int started = 0, running = 0, ended = 0;
  for (;;) {
    while (running < in_flight && started < count && end_ms - start_ms < limit_ms) {
      children[running++] = start_child(command);
      started++;
    }
    if (running == 0) break;
    int status;
    pid_t pid = wait(&status);
    end_ms = now_ms();
    int i = 0;
    while (i < running && children[i].pid != pid) i++;
    if (i == running || status != 0) return 1;
    times[ended++] = end_ms - children[i].start_ms;
    children[i] = children[--running];
  }

  qsort(times, (size_t)ended, sizeof *times, by_size);
  printf("{\"rate_per_second\":%f,\"p50_ms\":%f,\"p99_ms\":%f,\"own_cpu_us\":%f}\n", ended / (end_ms - start_ms) * 1e3,
         times[ended / 2], times[(ended - 1) * 99 / 100], own_cpu_us() / ended);
  return 0;
}
