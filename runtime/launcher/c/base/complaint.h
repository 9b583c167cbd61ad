/* What the launcher itself has to say, on standard error: a line for each complaint, which the service reads. */
#ifndef COMPLAINT_H
#define COMPLAINT_H

#include "base/fault.h"
#include "base/text.h"

void complain_of_usage(struct text *complaint);

void complain_of_fault(const char *task_id, struct fault fault);

#endif
