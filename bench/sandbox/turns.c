/*
 * Runs commands by turns, one after the other, each as often as the others, and prints how long each took: whatever else
 * the machine does meets them all alike. A line of JSON for each command (Turn in turns.ts).
 *
 * In an argument `{n}` stands for the number of the round. The order changes from round to round.
 *
 * Usage: turns ROUNDS LIMIT_MS ::: COMMAND [ARG...] [::: COMMAND [ARG...]]...
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEPARATOR ":::"
#define MAX_COMMANDS 8
#define MAX_ARGUMENTS 256
#define MAX_ROUNDS 100000

struct command {
  char **argv;
  double *times_ms;
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

static char *filled(char *argument, int round) {
  const char *place = strstr(argument, "{n}");
  if (place == NULL) return argument;
  size_t size = strlen(argument) + 16;
  char *copy = malloc(size);
  if (copy == NULL) exit(1);
  snprintf(copy, size, "%.*s%d%s", (int)(place - argument), argument, round, place + 3);
  return copy;
}

/* How long it took, from the call to its end. */
static double run(const struct command *command, int round, const posix_spawn_file_actions_t *silent) {
  char *argv[MAX_ARGUMENTS + 1];
  int count = 0;
  for (; command->argv[count] != NULL; count++) argv[count] = filled(command->argv[count], round);
  argv[count] = NULL;
  char *const no_environment[] = {NULL};
  pid_t pid;
  int status;
  double start_ms = now_ms();
  if (posix_spawn(&pid, argv[0], silent, NULL, argv, no_environment) != 0 || waitpid(pid, &status, 0) != pid ||
      status != 0) {
    fprintf(stderr, "%s ended with %d in round %d\n", argv[0], status, round);
    exit(1);
  }
  double took_ms = now_ms() - start_ms;
  for (int i = 0; i < count; i++)
    if (argv[i] != command->argv[i]) free(argv[i]);
  return took_ms;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int rounds = atoi(argv[1]), count = 0;
  double limit_ms = atof(argv[2]);
  if (rounds < 1 || rounds > MAX_ROUNDS) return 2;
  struct command commands[MAX_COMMANDS];
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], SEPARATOR) != 0) continue;
    if (count == MAX_COMMANDS) return 2;
    argv[i] = NULL; /* the end of the command before */
    commands[count++] = (struct command){argv + i + 1, calloc((size_t)rounds, sizeof(double))};
  }
  posix_spawn_file_actions_t silent;
  posix_spawn_file_actions_init(&silent);
  posix_spawn_file_actions_addopen(&silent, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

  double start_ms = now_ms();
  int done = 0;
  for (; done < rounds && now_ms() - start_ms < limit_ms; done++)
    for (int i = 0; i < count; i++) {
      int turn = (i + done) % count;
      commands[turn].times_ms[done] = run(&commands[turn], done, &silent);
    }
  for (int i = 0; i < count; i++) {
    qsort(commands[i].times_ms, (size_t)done, sizeof(double), by_size);
    printf("{\"p50_ms\":%f,\"p99_ms\":%f,\"min_ms\":%f,\"rounds\":%d}\n", commands[i].times_ms[done / 2],
           commands[i].times_ms[(done - 1) * 99 / 100], commands[i].times_ms[0], done);
  }
  return 0;
}
