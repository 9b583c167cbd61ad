/* Resource limits of the task (setrlimit). Its children inherit them, and each process is counted by itself. */
#ifndef LIMITS_H
#define LIMITS_H

#include "base/arguments.h"
#include "base/fault.h"

struct fault limits_apply(const struct arguments *arguments);

#endif
