/* What whoever started us has left of signals. */
#ifndef SIGNALS_H
#define SIGNALS_H

/* Every signal does what it does by default. It stays so in all that we fork, and what a program is given. */
void signals_by_default(void);

#endif
