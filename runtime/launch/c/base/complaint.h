/* Complaints: one line each on standard error, which serve reads. */
#ifndef COMPLAINT_H
#define COMPLAINT_H

#include "base/fault.h"
#include "base/text.h"

/* Sets a complaint for complain_of_usage. Returns false. */
#define COMPLAIN(complaint, ...) (text_set(complaint, __VA_ARGS__), false)

void complain_of_usage(const struct text *complaint);

void complain_of_fault(const char *task_id, struct fault fault);

#endif
