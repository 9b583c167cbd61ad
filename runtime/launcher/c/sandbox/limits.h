/* Limits of the task's process itself (setrlimit); what it starts inherits them, each process its own count. */
#ifndef LIMITS_H
#define LIMITS_H

#include "base/arguments.h"
#include "base/fault.h"

struct fault limits_apply(const struct arguments *arguments);

#endif
