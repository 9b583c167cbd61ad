/* Signals as a task gets them: whoever started us may have ignored some, and we block them all for ourselves. */
#ifndef SIGNALS_H
#define SIGNALS_H

/* Every signal does what it does by default. It stays so in all that we fork, and what a program is given. */
void signals_by_default(void);

/* None is blocked any more: for the task alone, just before it is the program. */
void signals_unblock(void);

#endif
