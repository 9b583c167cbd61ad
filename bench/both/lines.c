/* Writes lines at an even rate: `lines LINES_PER_SECOND SECONDS`, twenty times a second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS_PER_SECOND = 20, TURN_NS = 1000000000 / TURNS_PER_SECOND };

static char buffer[1 << 20];

int main(int count, char **arguments) {
  if (count != 3) return 2;
  int lines = atoi(arguments[1]) / TURNS_PER_SECOND;
  int turns = atoi(arguments[2]) * TURNS_PER_SECOND;
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (int turn = 0; turn < turns; turn++) {
    for (int line = 0; line < lines; line++) printf("turn %6d, line %4d: what a compiler or a test says in a line\n", turn, line);
    if (fflush(stdout) != 0) return 1;
    next.tv_nsec += TURN_NS;
    if (next.tv_nsec >= 1000000000) {
      next.tv_nsec -= 1000000000;
      next.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  return 0;
}
